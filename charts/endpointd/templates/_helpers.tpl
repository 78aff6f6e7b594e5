{{- define "endpointd.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* `endpointd` for a release of that name, `RELEASE-endpointd` for others. */ -}}
{{- define "endpointd.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "endpointd.name" .) .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (include "endpointd.name" .) | trunc 63 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "endpointd.namespace" -}}
{{ default .Release.Namespace .Values.namespaceOverride }}
{{- end }}

{{- define "endpointd.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ default (include "endpointd.fullname" .) .Values.serviceAccount.name }}
{{- else -}}
{{ required "`serviceAccount.name` is empty, and `serviceAccount.create` is false: name an account that exists" .Values.serviceAccount.name }}
{{- end -}}
{{- end }}

{{- define "endpointd.selectorLabels" -}}
app.kubernetes.io/name: {{ include "endpointd.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Labels of pods: without the version of the chart, which would restart pods that do not change. */ -}}
{{- define "endpointd.podLabels" -}}
{{ include "endpointd.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/component: controller
app.kubernetes.io/part-of: endpointd
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "endpointd.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "endpointd.podLabels" . }}
{{- end }}

{{- /* Arguments: the root context, `name`, whether the object has a namespace, and more labels. */ -}}
{{- define "endpointd.metadata" -}}
name: {{ .name }}
{{- if .namespaced }}
namespace: {{ include "endpointd.namespace" .root }}
{{- end }}
labels:
  {{- include "endpointd.labels" .root | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "endpointd.image" -}}
{{- with .Values.image -}}
{{- with .registry }}{{ . }}/{{ end }}{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion .tag }}{{ end }}
{{- end -}}
{{- end }}

{{- define "endpointd.subject" -}}
- kind: ServiceAccount
  name: {{ include "endpointd.serviceAccount" . }}
  namespace: {{ include "endpointd.namespace" . }}
{{- end }}

{{- /* The value of --controllers; empty for the default. */ -}}
{{- define "endpointd.controllers" -}}
{{- $import := "endpointslice-import-controller" -}}
{{- if .Values.imports.only -}}
{{- if .Values.controllers }}{{ fail "`imports.only` excludes `controllers`: set one of them" }}{{ end -}}
{{ $import }}
{{- else if .Values.imports.enabled -}}
{{ append (default (list "*") .Values.controllers) $import | join "," }}
{{- else -}}
{{ join "," .Values.controllers }}
{{- end -}}
{{- end }}
