// Package v1alpha1 contains the wire type of the API group settings.k8s.io: pod presets.
//
// Source: Kubernetes 1.11. The field names are the same. Kubernetes removed the group in 1.20.
//
// After changing the types, run `go generate` in this folder.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
package v1alpha1

//go:generate go run k8s.io/code-generator/cmd/deepcopy-gen@v0.37.2 --go-header-file /dev/null --output-file zz_generated.deepcopy.go .
//go:generate go run k8s.io/kube-openapi/cmd/openapi-gen@v0.0.0-20260721132016-d427ff9ee9ad --go-header-file /dev/null --output-dir . --output-pkg github.com/slipway-platform/slipway/apigroup/settings/v1alpha1 --output-file zz_generated.openapi.go --report-filename /dev/null .
