// A reporter for Vitest: writes the number of errors that belong to no test (an unhandled rejection, a hook of a project)
// to the file in PORTOLAN_TEST_ERRORS. The JSON report leaves them out.
import { writeFileSync } from 'node:fs';

export default class {
  onTestRunEnd(_modules, errors) {
    writeFileSync(process.env.PORTOLAN_TEST_ERRORS, String(errors.length));
  }
}
