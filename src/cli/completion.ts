// `portolan completion SHELL`: a script that completes commands and options, made from the commands there are.

import type { Command } from 'commander';
import { usageError } from './exit-codes.ts';
import { verbs } from './verbs.ts';
import type { CliDeps } from './with-home.ts';

/** One command with what may follow it, such as `broker token` with its options. */
interface Completed {
  readonly path: string;
  readonly words: readonly string[];
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
    .description(verbs.completion)
    .addHelpText('after', installation)
    .action((shell: string) => {
      const format = formats[shell];
      if (format === undefined) throw usageError(`completion ${shell}: there are ${Object.keys(formats).join(', ')}`);
      deps.print(format(commandsUnder(program, '')));
    });
}

function commandsUnder(command: Command, path: string): Completed[] {
  const options = command.options.flatMap(({ long, short }) => [long, short]).filter((flag) => flag !== undefined);
  const own = { path, words: [...command.commands.map((one) => one.name()), ...options, '--help'] };
  return [own, ...command.commands.flatMap((one) => commandsUnder(one, `${path} ${one.name()}`.trim()))];
}

function formatBash(commands: readonly Completed[]): string {
  const cases = commands.map(({ path, words }) => `    '${path}') words='${words.join(' ')}' ;;`);
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
  case "$path" in
${cases.join('\n')}
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
  return ['complete -c portolan -f', ...lines].join('\n');
}
