{{/* The image with its tag or digest. */}}
{{- define "fairlead.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Not empty if the hook is on with that provider: (list $ "karpenter"). */}}
{{- define "fairlead.provider" -}}
{{- $hook := (index . 0).Values.configuration.hook | default dict -}}
{{- if and $hook.enabled (eq ($hook.provider | default "") (index . 1)) }}yes{{ end -}}
{{- end }}

{{/* The flags of `fairlead run`, as JSON. */}}
{{- define "fairlead.args" -}}
{{- $args := list "--metrics-bind-address=:8080" -}}
{{- if .Values.admission.enabled -}}
{{- $args = append $args "--webhook-bind-address=:8443" -}}
{{- if .Values.admission.certificateSecret -}}
{{- $args = append $args "--webhook-certificate-dir=/etc/fairlead-webhook" -}}
{{- end -}}
{{- end -}}
{{- range $value := .Values.shards -}}
{{- $args = append $args (printf "--partition-label-value=%s" $value) -}}
{{- end -}}
{{- toJson (concat $args .Values.extraArgs) -}}
{{- end }}

{{/* An object of each shard, named as its Lease with a suffix, as JSON: (list $ "-usage"). */}}
{{- define "fairlead.names" -}}
{{- $suffix := index . 1 -}}
{{- $names := list -}}
{{- range $value := (index . 0).Values.shards | default (list "") -}}
{{- $names = append $names (printf "fairlead%s%s" (empty $value | ternary "" (printf "-%s" $value)) $suffix) -}}
{{- end -}}
{{- toJson $names -}}
{{- end }}

{{/* The configuration file. The Lease is where the rights to it are; reservation pods run this chart's image. */}}
{{- define "fairlead.configuration" -}}
{{- $own := deepCopy .Values.configuration -}}
{{- $_ := set $own "leaderElection" (merge (dict "resourceNamespace" .Release.Namespace "resourceName" "fairlead") ($own.leaderElection | default dict)) -}}
{{- $sharing := $own.gpuSharing | default dict -}}
{{- if has ($sharing.image | default "fairlead") (list "fairlead") -}}
{{- $_ := set $own "gpuSharing" (merge (dict "image" (include "fairlead.image" .)) $sharing) -}}
{{- end -}}
{{ toYaml .Values.schedulerConfiguration }}
---
{{ toYaml $own }}
{{- end }}
