// Everything that is wrong with a HostnameGenerator, each with its field, all at once. Pure.

import { type FieldError, invalid, notSupported, required } from '../../../kube/objects/field-error.ts';
import type { KubernetesObject } from '../../../kube/objects/object.ts';
import { meshExternalServiceType } from '../../kinds/mesh-external-service.ts';
import { fieldsOf, isAbsent, textOf } from './loose.ts';
import { parseTemplate } from './template.ts';

export function hostnameGeneratorErrors(object: KubernetesObject): FieldError[] {
  const errors: FieldError[] = [];
  const spec = fieldsOf((object as { spec?: unknown }).spec) ?? {};
  const template = textOf(spec['template']);
  if (template === undefined || template === '') errors.push(required('spec.template'));
  else {
    const parsed = parseTemplate(template);
    if (parsed.kind === 'refused') errors.push(invalid('spec.template', template, parsed.reason));
  }
  const targetRef = fieldsOf(spec['targetRef']);
  if (targetRef !== undefined && targetRef['kind'] !== meshExternalServiceType.kind)
    errors.push(notSupported('spec.targetRef.kind', targetRef['kind'] ?? '', [meshExternalServiceType.kind]));
  if (targetRef === undefined && isAbsent(spec['selector']))
    errors.push(required('spec.targetRef', 'set targetRef or selector to choose the resources'));
  return errors;
}
