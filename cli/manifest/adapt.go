package manifest

import "maps"

// workload sets the selector. In the old versions, the template's labels were the default selector.
func workload(object map[string]any, _ string) string {
	spec, ok := dig(object, "spec")
	if !ok || spec["selector"] != nil {
		return ""
	}
	labels, ok := dig(spec, "template", "metadata", "labels")
	if !ok {
		return ""
	}
	spec["selector"] = map[string]any{"matchLabels": maps.Clone(labels)}
	return ""
}

// deployment sets the defaults of extensions/v1beta1 explicitly: a rolling update of one pod at a
// time.
func deployment(object map[string]any, from string) string {
	workload(object, from)
	spec, ok := dig(object, "spec")
	if !ok {
		return ""
	}
	delete(spec, "rollbackTo")
	if from != "extensions/v1beta1" {
		return ""
	}
	strategy := child(spec, "strategy")
	if kind := text(strategy, "type"); kind != "" && kind != "RollingUpdate" {
		return ""
	}
	strategy["type"] = "RollingUpdate"
	rolling := child(strategy, "rollingUpdate")
	setDefault(rolling, "maxSurge", 1)
	setDefault(rolling, "maxUnavailable", 1)
	return ""
}

// daemonSet sets the default update strategy of extensions/v1beta1 explicitly. With this strategy,
// OnDelete, a pod is replaced only after it is deleted.
func daemonSet(object map[string]any, from string) string {
	workload(object, from)
	spec, ok := dig(object, "spec")
	if !ok {
		return ""
	}
	delete(spec, "templateGeneration")
	if from == "extensions/v1beta1" {
		setDefault(child(spec, "updateStrategy"), "type", "OnDelete")
	}
	return ""
}

func statefulSet(object map[string]any, from string) string {
	workload(object, from)
	if spec, ok := dig(object, "spec"); ok && from == "apps/v1beta1" {
		setDefault(child(spec, "updateStrategy"), "type", "OnDelete")
	}
	return ""
}

// ingress converts backends to the format of networking.k8s.io/v1.
func ingress(object map[string]any, _ string) string {
	spec, ok := dig(object, "spec")
	if !ok {
		return ""
	}
	if backend, ok := dig(spec, "backend"); ok {
		delete(spec, "backend")
		spec["defaultBackend"] = backendOf(backend)
	}
	for _, rule := range items(spec, "rules") {
		http, _ := dig(rule, "http")
		for _, path := range items(http, "paths") {
			setDefault(path, "pathType", "ImplementationSpecific")
			if backend, ok := dig(path, "backend"); ok {
				path["backend"] = backendOf(backend)
			}
		}
	}
	return ""
}

func backendOf(old map[string]any) map[string]any {
	result := map[string]any{}
	if resource := old["resource"]; resource != nil {
		result["resource"] = resource
	}
	name, ok := old["serviceName"]
	if !ok {
		return result
	}
	service := map[string]any{"name": name}
	switch port := old["servicePort"].(type) {
	case nil:
	case string:
		service["port"] = map[string]any{"name": port}
	default:
		service["port"] = map[string]any{"number": port}
	}
	result["service"] = service
	return result
}

// disruptionBudget warns about an empty selector, which used to select no pods and now selects all
// pods.
func disruptionBudget(object map[string]any, _ string) string {
	if selector, ok := dig(object, "spec", "selector"); ok && len(selector) == 0 {
		return "its empty selector selected no pods, and now selects all pods of the namespace"
	}
	return ""
}

// roleRef sets the API group of the role reference, which was optional in the old versions.
func roleRef(object map[string]any, _ string) string {
	if reference, ok := dig(object, "roleRef"); ok {
		setDefault(reference, "apiGroup", "rbac.authorization.k8s.io")
	}
	return ""
}

// webhooks sets the old version's defaults explicitly. It also sets the fields that the current
// version requires.
func webhooks(object map[string]any, _ string) string {
	note := ""
	for _, webhook := range items(object, "webhooks") {
		setDefault(webhook, "failurePolicy", "Ignore")
		setDefault(webhook, "matchPolicy", "Exact")
		setDefault(webhook, "timeoutSeconds", 30)
		setDefault(webhook, "admissionReviewVersions", []any{"v1beta1"})
		if effects := text(webhook, "sideEffects"); effects == "" || effects == "Unknown" || effects == "Some" {
			webhook["sideEffects"] = "None"
			note = "sideEffects is set to None, so dry runs call the webhook, too"
		}
	}
	return note
}

// customResource adds a schema to each version if the definition has one schema for all versions.
// If a definition preserved unknown fields, the new definition also preserves them.
func customResource(object map[string]any, _ string) string {
	spec, ok := dig(object, "spec")
	if !ok {
		return ""
	}
	versions := items(spec, "versions")
	if version := text(spec, "version"); version != "" && len(versions) == 0 {
		only := map[string]any{"name": version, "served": true, "storage": true}
		versions, spec["versions"] = []map[string]any{only}, []any{only}
	}
	schema, ok := dig(spec, "validation")
	if !ok {
		schema = map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
	}
	if root, ok := dig(schema, "openAPIV3Schema"); ok {
		setDefault(root, "type", "object")
		if spec["preserveUnknownFields"] != false {
			setDefault(root, "x-kubernetes-preserve-unknown-fields", true)
		}
	}
	for _, version := range versions {
		setDefault(version, "schema", schema)
		if subresources := spec["subresources"]; subresources != nil {
			setDefault(version, "subresources", subresources)
		}
		if columns := columnsOf(spec); columns != nil {
			setDefault(version, "additionalPrinterColumns", columns)
		}
	}
	for _, name := range []string{"version", "validation", "subresources", "additionalPrinterColumns", "preserveUnknownFields"} {
		delete(spec, name)
	}
	return ""
}

func columnsOf(spec map[string]any) []any {
	columns, _ := spec["additionalPrinterColumns"].([]any)
	for _, column := range items(spec, "additionalPrinterColumns") {
		if path, ok := column["JSONPath"]; ok {
			delete(column, "JSONPath")
			column["jsonPath"] = path
		}
	}
	return columns
}

// child returns the map in a field of object. If the map does not exist, child creates it.
func child(object map[string]any, name string) map[string]any {
	value, ok := object[name].(map[string]any)
	if !ok {
		value = map[string]any{}
		object[name] = value
	}
	return value
}

// items returns the elements of a list that are maps.
func items(object map[string]any, name string) (match []map[string]any) {
	list, _ := object[name].([]any)
	for _, item := range list {
		if object, ok := item.(map[string]any); ok {
			match = append(match, object)
		}
	}
	return match
}

func setDefault(object map[string]any, name string, value any) {
	if object[name] == nil {
		object[name] = value
	}
}
