package apiserver

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// wireTypes is the module that contains OpenShift's types.
	wireTypes = "github.com/openshift/api/"
	// ownTypes is the module that contains the types of groups without a separate types module.
	ownTypes = "github.com/slipway-platform/slipway/"
)

// isWireType reports whether the types in a Go package are served without conversion.
func isWireType(pkgPath string) bool {
	return isDocumented(pkgPath) || strings.HasPrefix(pkgPath, "k8s.io/metrics/")
}

// isDocumented reports whether the OpenAPI definitions of the features' groups include the
// definitions of the types in a Go package, or of a single type.
func isDocumented(path string) bool {
	return strings.HasPrefix(path, wireTypes) || strings.HasPrefix(path, ownTypes)
}

// schemes creates two schemes. serving is for serving and storing objects: each wire type is also
// its own internal version. external is the source of OpenAPI names, and contains only the external
// versions.
func schemes(groups []Group) (serving, external *runtime.Scheme, err error) {
	serving, external = runtime.NewScheme(), runtime.NewScheme()
	for _, scheme := range []*runtime.Scheme{serving, external} {
		metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
		unversioned := schema.GroupVersion{Group: "", Version: "v1"}
		scheme.AddUnversionedTypes(unversioned, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{},
			&metav1.APIGroup{}, &metav1.APIResourceList{})
	}
	for _, group := range groups {
		for _, scheme := range []*runtime.Scheme{serving, external} {
			if err := group.Install(scheme); err != nil {
				return nil, nil, fmt.Errorf("register types of %s: %w", group.GroupVersion, err)
			}
			if group.Legacy == nil {
				continue
			}
			if err := group.Legacy(scheme); err != nil {
				return nil, nil, fmt.Errorf("register old names of %s: %w", group.GroupVersion, err)
			}
		}
		registerInternal(serving, group.GroupVersion)
		registerInternal(serving, legacyVersion)
		for _, resource := range group.Resources {
			if err := resource.register(serving, group.GroupVersion); err != nil {
				return nil, nil, fmt.Errorf("prepare types of %s: %w", group.GroupVersion, err)
			}
		}
		if group.Prepare == nil {
			continue
		}
		if err := group.Prepare(serving); err != nil {
			return nil, nil, fmt.Errorf("prepare types of %s: %w", group.GroupVersion, err)
		}
	}
	return serving, external, nil
}

// registerInternal registers every wire type of gv a second time as the internal version. When the
// generic machinery requests an internal version, it therefore receives the same Go type without
// conversion.
func registerInternal(scheme *runtime.Scheme, gv schema.GroupVersion) {
	internal := schema.GroupVersion{Group: gv.Group, Version: runtime.APIVersionInternal}
	for kind, goType := range scheme.KnownTypes(gv) {
		if !isWireType(goType.PkgPath()) {
			continue
		}
		object, ok := scheme.New(gv.WithKind(kind))
		if ok != nil {
			continue
		}
		scheme.AddKnownTypeWithName(internal.WithKind(kind), object)
	}
}
