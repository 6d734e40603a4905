// Package v1alpha1 contains the wire types of the automationbroker.io API group: the bundles,
// instances and bindings of the Ansible service broker.
//
// Source: the custom resources of the Ansible service broker of OpenShift 3.11.
//
// After changing the types, run `go generate` in this folder.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
package v1alpha1

//go:generate go run k8s.io/code-generator/cmd/deepcopy-gen@v0.37.2 --go-header-file /dev/null --output-file zz_generated.deepcopy.go .
//go:generate go run k8s.io/kube-openapi/cmd/openapi-gen@v0.0.0-20260721132016-d427ff9ee9ad --go-header-file /dev/null --output-dir . --output-pkg github.com/slipway-platform/slipway/catalog/ansible/v1alpha1 --output-file zz_generated.openapi.go --report-filename /dev/null .
