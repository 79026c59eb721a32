// `portolan completion SHELL`: a script that completes commands, options and the values of options, made from the commands there
// are. Names of services and contexts are asked for when they are needed.

import { type Command, Option } from 'commander';
import { contextNames } from '../kube/client/kubeconfig.ts';
import { usageError } from './exit-codes.ts';
import { knownServices } from './suggest.ts';
import { verbs } from './verbs.ts';
import { type CliDeps, withHome } from './with-home.ts';

/** One command with what may follow it, such as `broker token` with its options. */
interface Completed {
  readonly path: string;
  readonly words: readonly string[];
  /** The values of an option: words, or what to ask for. */
  readonly values: ReadonlyMap<string, string>;
  /** Whether its argument is a service. */
  readonly takesService: boolean;
}

const formats: Readonly<Record<string, (commands: readonly Completed[]) => string>> = {
  bash: formatBash,
  zsh: (commands) => `autoload -U +X bashcompinit && bashcompinit\n${formatBash(commands)}`,
  fish: formatFish,
};

const installation = `
To use it now, and in every new shell:
  bash  source <(portolan completion bash)    # add the line to ~/.bashrc
  zsh   source <(portolan completion zsh)     # add the line to ~/.zshrc, after compinit
  fish  portolan completion fish > ~/.config/fish/completions/portolan.fish`;

export function addCompletionCommand(program: Command, deps: CliDeps): void {
  program
    .command('completion')
    .argument('<shell>', Object.keys(formats).join(', '))
    .addOption(new Option('--list <what>', 'what a script asks for').choices(['contexts', 'services']).hideHelp())
    .description(verbs.completion)
    .addHelpText('after', installation)
    .action(async (shell: string, flags: { readonly list?: 'contexts' | 'services' }) => {
      // Without an answer nothing is completed, and the person is not disturbed.
      if (flags.list !== undefined) {
        for (const word of await namesOf(deps, flags.list).catch(() => [])) deps.print(word);
        return;
      }
      const format = formats[shell];
      if (format === undefined) throw usageError(`completion ${shell}: there are ${Object.keys(formats).join(', ')}`);
      deps.print(format(commandsUnder(program, '')));
    });
}

async function namesOf(deps: CliDeps, what: 'contexts' | 'services'): Promise<readonly string[]> {
  if (what === 'services') return withHome(deps, {}, ({ client }) => knownServices(client));
  return contextNames(deps.host);
}

const ask = (what: string) => `$(portolan completion bash --list ${what} 2>/dev/null)`;

function valuesOf(command: Command): Map<string, string> {
  const found = new Map<string, string>();
  for (const { long, short, argChoices } of command.options) {
    const words = long === '--context' ? ask('contexts') : argChoices?.join(' ');
    const flags = [long, short].filter((flag) => flag !== undefined && flag !== null);
    const known = long === '--output' ? 'text wide json yaml name' : words;
    if (known !== undefined) for (const flag of flags) found.set(flag, known);
  }
  return found;
}

function commandsUnder(command: Command, path: string): Completed[] {
  const options = command.options.flatMap(({ long, short }) => [long, short]).filter((flag) => flag !== undefined);
  const takesService = command.registeredArguments.some((one) => one.name() === 'namespace/name');
  const words = [...command.commands.map((one) => one.name()), ...options, '--help'];
  const own = { path, words, values: valuesOf(command), takesService };
  return [own, ...command.commands.flatMap((one) => commandsUnder(one, `${path} ${one.name()}`.trim()))];
}

function formatBash(commands: readonly Completed[]): string {
  const cases = commands.map(({ path, words }) => `    '${path}') words='${words.join(' ')}' ;;`);
  const withServices = commands.filter(({ takesService }) => takesService).map(({ path }) => `'${path}'`);
  const values = commands.flatMap(({ path, values: own }) =>
    [...own].map(([flag, words]) => `    '${path} ${flag}') words="${words}" ;;`),
  );
  return `_portolan() {
  local path='' word words=''
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) case " ${commands
      .map(({ path }) => path)
      .filter(Boolean)
      .join(' | ')} " in
      *" \${path:+$path }$word "*) path="\${path:+$path }$word" ;;
    esac ;; esac
  done
  local previous="\${COMP_WORDS[COMP_CWORD-1]}"
  word="\${COMP_WORDS[COMP_CWORD]}"
  case "$path $previous" in
${values.join('\n')}
    *) case "$path" in
${cases.join('\n')}
    esac
    case "$path" in
    ${withServices.join(' | ')}) [[ $word == -* ]] || words="$words ${ask('services')}" ;;
    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _portolan portolan`;
}

function formatFish(commands: readonly Completed[]): string {
  const lines = commands.map(({ path, words }) => {
    const condition = path === '' ? '__fish_use_subcommand' : `__fish_seen_subcommand_from ${path.split(' ').at(-1)}`;
    return `complete -c portolan -n '${condition}' -a '${words.join(' ')}'`;
  });
  const names = commands
    .filter(({ takesService }) => takesService)
    .map(({ path }) => {
      const condition = `__fish_seen_subcommand_from ${path.split(' ').at(-1)}`;
      return `complete -c portolan -n '${condition}' -a '(portolan completion fish --list services 2>/dev/null)'`;
    });
  const contexts = "complete -c portolan -l context -x -a '(portolan completion fish --list contexts 2>/dev/null)'";
  return ['complete -c portolan -f', ...lines, ...names, contexts].join('\n');
}
