// Every option can be given in the environment too: `--kubeconfig FILE` as `PORTOLAN_KUBECONFIG=FILE`. The command line
// goes first. Several values have commas between them.

import { type Command, Help, type Option } from 'commander';

export function takeFlagsFromEnvironment(program: Command): void {
  for (const command of program.commands) {
    for (const option of command.options) readFromEnvironment(command, option);
    // The documentation says the rule once; the help of each option does not repeat it.
    command.configureHelp({ optionDescription: describeWithoutVariable });
    takeFlagsFromEnvironment(command);
  }
}

function readFromEnvironment(command: Command, option: Option): void {
  if (option.long === undefined) return;
  option.env(
    `PORTOLAN_${option.long
      .replace(/^--(no-)?/, '')
      .replaceAll('-', '_')
      .toUpperCase()}`,
  );
  // Commander listens for a variable only if it is named when the option is added.
  command.on(`optionEnv:${option.name()}`, (text?: string) => {
    command.setOptionValueWithSource(option.attributeName(), parsed(option, text), 'env');
  });
}

function parsed(option: Option, text: string | undefined): unknown {
  if (text === undefined) return !option.negate;
  if (option.variadic) return text.split(',');
  return option.parseArg === undefined ? text : option.parseArg(text, undefined);
}

function describeWithoutVariable(option: Option): string {
  const { envVar } = option;
  option.envVar = undefined;
  const text = new Help().optionDescription(option);
  option.envVar = envVar;
  return text;
}
