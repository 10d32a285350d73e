{{- define "heatsoak.fullname" -}}
{{- if contains "heatsoak" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-heatsoak" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "heatsoak.selector" -}}
app.kubernetes.io/name: heatsoak
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "heatsoak.labels" -}}
{{ include "heatsoak.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "heatsoak.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "heatsoak.fullname" .) .Values.serviceAccount.name }}{{ else }}{{ default "default" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- define "heatsoak.uid" -}}
{{- if .Values.podResources.enabled }}0{{ else }}10001{{ end }}
{{- end }}

{{- define "heatsoak.config" -}}
{{- $allocation := dict }}
{{- if .Values.podResources.enabled }}{{ $allocation = dict "allocation" (dict "pod_resources" "/pod-resources/kubelet.sock") }}{{ end }}
{{- mergeOverwrite $allocation (deepCopy .Values.config) | toToml }}
{{- end }}

{{/* What a container of the pod may do. Privileged is a contradiction to the rest of it. */}}
{{- define "heatsoak.security" -}}
readOnlyRootFilesystem: true
{{- if eq .Values.gpuAccess "privileged" }}
privileged: true
{{- else }}
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
{{- end }}
{{- end }}

{{- define "heatsoak.health" -}}
{{- if eq .root.Values.web.healthCheck "tcp" }}
tcpSocket:
  port: http
{{- else }}
httpGet:
  path: {{ .path }}
  port: http
  scheme: {{ .root.Values.web.scheme }}
  {{- with .root.Values.web.healthHeaders }}
  httpHeaders: {{ toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* One term a label: terms are alternatives, expressions within a term add up. */}}
{{- define "heatsoak.nodeTerms" -}}
{{- $burnin := .burnin }}
{{- range default (list dict) .root.Values.gpuNodeTerms }}
- matchExpressions:
  {{- with . }}
  - {{ toYaml . | nindent 4 | trim }}
  {{- end }}
  {{- with $burnin }}
  - {{ toYaml . | nindent 4 | trim }}
  {{- end }}
{{- end }}
{{- end }}
