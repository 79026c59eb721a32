// The YAML examples of the founding document's chosen option: the first as it stands, and all of them with the repairs that
// they need. Repairs are listed in docs/guides/external-services.md.

/** As it stands, but for apiVersion and namespace: sets both Regular and extension, which its own text excludes. */
export const firstAsItStands = `
apiVersion: portolan.dev/v1alpha1
kind: MeshExternalService
metadata:
  name: example
  namespace: portolan-system
  labels:
    kuma.io/mesh: default
    kuma.io/zone: east-1
spec:
  match:
  - type: InternalVIP # Kuma will generate a domain
    value: example.ext.svc.local
    port: 80
    protocol: http
  - type: Domain # Existing domain
    value: httpbin.com
    port: 80
    protocol: http
  - type: CIDR
    value: 10.1.1.0/24
    port: 80
    protocol: http
  - type: IP
    value: 192.168.0.1
    port: 80
    protocol: http
  destination:
    type: Regular # Regular|Passthrough|Extension
    extension:
      type: Lambda 
      config: # type JSON
        arn: arn:aws:lambda:us-west-2:123456789012:function:my-function
    endpoints:
    - address: 1.1.1.1
      port: 12345
    - address: example.com
    - address: unix://....
    tls:
      enabled: true
      version:
        min: TLSv1_2 # or TLS_AUTO, TLSv1_0, TLSv1_1, TLSv1_2, TLSv1_3
        max: TLSv1_3 # or TLS_AUTO, TLSv1_0, TLSv1_1, TLSv1_2, TLSv1_3
      allowRenegotiation: false
      verification:
        skip: true # if this is true then subjectAltNames don't take effect
        subjectAltNames: # if subjectAltNames is not defined then take domain or ips
          - example.com
          - "spiffe://example.local/ns/local"
      caCert: 
        inline: 123
      clientCert:
        secret: 123
      clientKey:
        secret: 123
status: 
  vips:
  - ip: 242.0.0.1
    type: Kuma
    hostname: example.ext.svc.local
`;

/** Without extension; a path behind unix://; certificates by name. */
export const firstRepaired = firstAsItStands
  .replace(/ {4}extension:[\s\S]*?my-function\n/, '')
  .replace('unix://....', 'unix:///run/example.sock')
  .replace('inline: 123', 'secret: pki')
  .replaceAll('secret: 123', 'secret: pki');

const head = (name: string, labels: string) => `
apiVersion: portolan.dev/v1alpha1
kind: MeshExternalService
metadata:
  name: ${name}
  namespace: portolan-system
  labels:
    kuma.io/mesh: default${labels}
spec:`;
const zone = '\n    kuma.io/zone: east-1';

/** `destination` indented as deep as `match`. */
export const httpbin = `${head('httpbin', zone)}
  match:
  - type: Domain
    value: httpbin.com
    port: 80
    protocol: http2
  - type: Domain
    value: httpbin.com
    port: 443
    protocol: tls
  destination:
    type: Passthrough
`;

export const lambda = `${head('example', zone)}
  match:
  - type: InternalVIP
    value: example.ext.svc.local
    port: 80
    protocol: http
  destination:
    type: Extension
    extension:
      type: Lambda 
      config:
        arn: arn:aws:lambda:us-west-2:123456789012:function:my-function
`;

export const mongo = `${head('mongo', '')}
  match:
  - type: InternalVIP # Kuma will generate a domain
    value: mongo.ext.svc.local
    port: 27017
    protocol: tcp
  destination:
    type: Regular # Regular|Passthrough|Extension
    endpoints:
    - address: 10.0.0.1
      port: 27017
    - address: 10.0.0.2
      port: 27017
status: 
  vips:
  - ip: 242.0.0.1
    type: Kuma
    hostname: mongo.ext.svc.local
`;

/** The star needs quotes. */
export const kafka = `${head('kafka', '')}
  match: 
  - type: Domain
    value: "*.eu-west-3.aws.cloud"
    port: 9092
    protocol: tls
`;
