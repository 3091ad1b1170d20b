{{- define "pactgate.labels" -}}
app.kubernetes.io/name: pactgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "pactgate.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "listen" (merge (dict "host" "0.0.0.0" "port" 7411) (default dict $config.listen)) -}}
{{- $hop := dict "host" "0.0.0.0" "port" 7412 "advertise" "${POD_IP}" -}}
{{- if (default dict $config.state).url -}}
{{- $_ := set $config "state" (merge (dict "hop" $hop) $config.state) -}}
{{- end -}}
{{- toPrettyJson $config -}}
{{- end }}
