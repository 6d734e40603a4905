// Package v1beta1 contains the wire types of the API group servicecatalog.k8s.io: brokers, their
// classes and plans, service instances and bindings.
//
// Source: the service catalog of OpenShift 3.7 to 3.11, whose last release is 0.3. The field names
// and values are the same as in release 0.3, so that its client and manifests work.
//
// After changing the types, run `go generate` in this folder.
//
// +k8s:deepcopy-gen=package
// +k8s:openapi-gen=true
package v1beta1

//go:generate go run k8s.io/code-generator/cmd/deepcopy-gen@v0.37.2 --go-header-file /dev/null --output-file zz_generated.deepcopy.go .
//go:generate go run k8s.io/kube-openapi/cmd/openapi-gen@v0.0.0-20260721132016-d427ff9ee9ad --go-header-file /dev/null --output-dir . --output-pkg github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1 --output-file zz_generated.openapi.go --report-filename /dev/null .
