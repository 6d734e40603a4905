package apiserver

import (
	"strings"

	openshift "github.com/openshift/api/openapi/generated_openapi"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// describe sets the OpenAPI v2 and v3 configuration. The definitions of our wire types were generated
// with Go paths as their names, those of Kubernetes since 1.35 with friendly ones
// (io.k8s.api.core.v1.Pod): both are brought to the friendly form, in references too, or server-side
// apply and `explain` would not find a type that another one refers to.
func (s *Server) describe(config *genericserver.Config, kube common.GetOpenAPIDefinitions) {
	namer := openapi.NewDefinitionNamer(s.external)
	name := func(path string) (string, spec.Extensions) { return namer.GetDefinitionName(friendly(path)) }
	all := definitions(kube)

	v2 := genericserver.DefaultOpenAPIConfig(all, namer)
	v2.GetDefinitionName = name
	v2.Info.Title = "Slipway"
	config.OpenAPIConfig = v2

	v3 := genericserver.DefaultOpenAPIV3Config(all, namer)
	v3.GetDefinitionName = name
	v3.Info.Title = "Slipway"
	config.OpenAPIV3Config = v3
}

// definitions is Kubernetes' definitions and those of our wire types that refer to them.
func definitions(kube common.GetOpenAPIDefinitions) common.GetOpenAPIDefinitions {
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		merged := kube(ref)
		ours := openshift.GetOpenAPIDefinitions(func(path string) spec.Ref { return ref(friendly(path)) })
		for path, definition := range ours {
			if !strings.HasPrefix(path, wireTypes) {
				continue
			}
			for i, dependency := range definition.Dependencies {
				if !strings.HasPrefix(dependency, wireTypes) {
					definition.Dependencies[i] = friendly(dependency)
				}
			}
			merged[path] = definition
		}
		return merged
	}
}

// friendly turns a Go path into its OpenAPI model name and leaves a model name as it is.
func friendly(path string) string {
	if !strings.Contains(path, "/") {
		return path
	}
	return util.ToRESTFriendlyName(path)
}
