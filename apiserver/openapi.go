package apiserver

import (
	"strings"

	"github.com/emicklei/go-restful/v3"
	openshift "github.com/openshift/api/openapi/generated_openapi"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/util"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// describe sets the OpenAPI v2 and v3 configuration. The definitions of Slipway's wire types have
// Go paths as their names. Since 1.35, Kubernetes' definitions have friendly names
// (io.k8s.api.core.v1.Pod). describe converts all names to the friendly form, including references.
// Otherwise, server-side apply and `explain` could not find referenced types.
func (s *Server) describe(kube common.GetOpenAPIDefinitions) {
	namer := openapi.NewDefinitionNamer(s.external)
	name := func(path string) (string, spec.Extensions) { return namer.GetDefinitionName(friendly(path)) }
	all := s.definitions(kube)

	v2 := genericserver.DefaultOpenAPIConfig(all, namer)
	v2.GetDefinitionName = name
	v2.GetOperationIDAndTags = s.operation
	v2.Info.Title = "Slipway"
	s.config.OpenAPIConfig = v2

	v3 := genericserver.DefaultOpenAPIV3Config(all, namer)
	v3.GetDefinitionName = name
	v3.GetOperationIDAndTags = s.operation
	v3.Info.Title = "Slipway"
	s.config.OpenAPIV3Config = v3
	KeepNoDefinitions(v2, v3)
}

// operation returns the ID and the tags of a route's operation. Upstream derives the ID of a
// subresource's operation from the parent's kind and the name of the subresource. An operation for
// a kind whose name is composed in the same way, such as DeploymentConfigRollback, would have the
// same ID. Because clients reject a document with duplicate IDs, operation adds a suffix to the ID.
func (s *Server) operation(route *restful.Route) (id string, tags []string, err error) {
	id, tags, err = openapi.GetOperationIDAndTags(route)
	_, subresource, ok := strings.Cut(route.Path, "/{name}/")
	if err != nil || !ok {
		return id, tags, err
	}
	for kind := range s.scheme.AllKnownTypes() {
		if strings.HasSuffix(strings.ToLower(kind.Kind), subresource) && strings.HasSuffix(id, kind.Kind) {
			return id + "Subresource", tags, nil
		}
	}
	return id, tags, nil
}

// definitions returns the definitions of the served groups' types, of all types that they refer to,
// and of the generic types (lists, patches, status). OpenShift's and Kubernetes' generators
// together produce four thousand definitions, which the API server would otherwise keep in memory a
// second time.
func (s *Server) definitions(kube common.GetOpenAPIDefinitions) common.GetOpenAPIDefinitions {
	packages := s.packages()
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		all := kube(ref)
		for _, describe := range s.describers() {
			for path, definition := range describe(func(path string) spec.Ref { return ref(friendly(path)) }) {
				if !isDocumented(path) {
					continue
				}
				for i, dependency := range definition.Dependencies {
					if !isDocumented(dependency) {
						definition.Dependencies[i] = friendly(dependency)
					}
				}
				definition.Schema.Required = required(path, definition.Schema)
				all[path] = definition
			}
		}
		definitions := map[string]common.OpenAPIDefinition{}
		for name := range all {
			if strings.HasPrefix(name, machinery) || packages[name[:strings.LastIndex(name, ".")]] {
				addWithDependencies(definitions, all, name)
			}
		}
		for kind, goType := range s.scheme.AllKnownTypes() {
			if kind.Group != "" { // Kubernetes kinds that a subresource returns, such as Scale
				addWithDependencies(definitions, all, friendly(goType.PkgPath()+"."+goType.Name()))
			}
		}
		return definitions
	}
}

// describers returns the functions that return the definitions of the groups' types.
func (s *Server) describers() []common.GetOpenAPIDefinitions {
	describers := []common.GetOpenAPIDefinitions{openshift.GetOpenAPIDefinitions}
	for _, group := range s.groups {
		if group.Definitions != nil {
			describers = append(describers, group.Definitions)
		}
	}
	return describers
}

// machinery is the name prefix of the definitions that every API server requires.
const machinery = "io.k8s.apimachinery."

func addWithDependencies(definitions, all map[string]common.OpenAPIDefinition, name string) {
	definition, exists := all[name]
	if _, added := definitions[name]; added || !exists {
		return
	}
	definitions[name] = definition
	for _, dependency := range definition.Dependencies {
		addWithDependencies(definitions, all, dependency)
	}
}

// packages returns the Go packages of the served groups' types.
func (s *Server) packages() map[string]bool {
	packages := map[string]bool{}
	for _, gv := range s.GroupVersions() {
		for _, goType := range s.external.KnownTypes(gv) {
			if isDocumented(goType.PkgPath()) {
				packages[goType.PkgPath()] = true
			}
		}
	}
	return packages
}

// friendly converts a Go path to its OpenAPI model name. It returns a model name unchanged.
func friendly(path string) string {
	if !strings.Contains(path, "/") {
		return path
	}
	return util.ToRESTFriendlyName(path)
}
