{{- define "portolan.defaults" }}
image: portolan
imagePullPolicy: ""
imagePullSecrets: []
envoyImage: docker.io/envoyproxy/envoy:distroless-v1.40.0
logLevel: info
listenAddress: 0.0.0.0
serviceMonitor: false
rightsOnly: false
adminFrom: []
agent:
  enabled: true
  replicas: 2
  cpu: 50m
  memory: 192Mi
  writeServices: false
  cpuLimit: ""
  nodeSelector: {}
  affinity: {}
  tolerations: []
  podAnnotations: {}
  extraArgs: []
  extraEnv: []
  from: []
  egress:
    - {}
dns:
  enabled: true
  workload: Deployment
  replicas: 2
  cpu: 100m
  memory: 256Mi
  clusterIP: ""
  forward: ""
  clusterId: ""
  clients: []
  lameduck: 5
  stubAdvertise: ""
  stubServiceType: LoadBalancer
  cpuLimit: ""
  nodeSelector: {}
  affinity: {}
  tolerations: []
  podAnnotations: {}
  extraArgs: []
  extraEnv: []
  from: []
  egress:
    - {}
proxy:
  enabled: true
  cpu: 50m
  memory: 192Mi
  services: false
  cpuLimit: ""
  nodeSelector: {}
  affinity: {}
  tolerations: []
  podAnnotations: {}
  extraArgs: []
  extraEnv: []
  from: []
  egress:
    - {}
peering:
  enabled: false
  replicas: 2
  cpu: 50m
  memory: 256Mi
  trustDomain: ""
  advertise: ""
  serviceType: LoadBalancer
  cpuLimit: ""
  nodeSelector: {}
  affinity: {}
  tolerations: []
  podAnnotations: {}
  extraArgs: []
  extraEnv: []
  from: []
  egress:
    - {}
authority:
  enabled: false
  replicas: 2
  cpu: 100m
  memory: 256Mi
  federation: ""
  clusterset: clusterset
  brokerSecret: portolan-authority-broker
  serviceType: LoadBalancer
  cpuLimit: ""
  nodeSelector: {}
  affinity: {}
  tolerations: []
  podAnnotations: {}
  extraArgs: []
  extraEnv: []
  from: []
  egress:
    - {}
xds:
  enabled: false
  replicas: 2
  cpu: 100m
  memory: 256Mi
  cpuLimit: ""
  nodeSelector: {}
  affinity: {}
  tolerations: []
  podAnnotations: {}
  extraArgs: []
  extraEnv: []
  from: []
  egress:
    - {}
ingress:
  enabled: false
  replicas: 2
  cpu: 100m
  memory: 128Mi
  serviceType: LoadBalancer
  cpuLimit: ""
  nodeSelector: {}
  affinity: {}
  tolerations: []
  podAnnotations: {}
  extraArgs: []
  extraEnv: []
  from: []
  egress:
    - {}
envoy:
  enabled: false
  cpu: 100m
  memory: 128Mi
  cpuLimit: ""
  nodeSelector: {}
  affinity: {}
  tolerations: []
  podAnnotations: {}
  extraArgs: []
  extraEnv: []
  from: []
  egress:
    - {}
gateway:
  enabled: false
  replicas: 2
  cpu: 100m
  memory: 256Mi
  serviceType: LoadBalancer
  drainSeconds: 30
  cpuLimit: ""
  nodeSelector: {}
  affinity: {}
  tolerations: []
  podAnnotations: {}
  extraArgs: []
  extraEnv: []
  from: []
  egress:
    - {}
dashboard:
  enabled: false
  cpu: 50m
  memory: 192Mi
  tlsSecret: portolan-dashboard-tls
  host: ""
  cpuLimit: ""
  nodeSelector: {}
  affinity: {}
  tolerations: []
  podAnnotations: {}
  extraArgs: []
  extraEnv: []
  from: []
  egress:
    - {}
{{- end }}
{{- define "portolan.values" }}
{{- mergeOverwrite (include "portolan.defaults" . | fromYaml) (deepCopy .Values) | toYaml }}
{{- end }}
{{- /* A number as people write it: 4200000, not 4.2e+06. */}}
{{- define "portolan.text" }}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ printf "%.0f" . }}{{ else }}{{ . }}{{ end }}
{{- end }}
{{- /* Follows the version unless a tag or a digest pins it. */}}
{{- define "portolan.image" }}
{{- $image := ternary "portolan" .image (eq .image "portolan:0.1.0") }}
{{- if regexMatch "@|:[^/]*$" $image }}{{ $image }}{{ else }}{{ $image }}:{{ .version }}{{ end }}
{{- end }}
