package main

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	authorizationv1 "github.com/openshift/api/authorization/v1"
	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	networkv1 "github.com/openshift/api/network/v1"
	oauthv1 "github.com/openshift/api/oauth/v1"
	projectv1 "github.com/openshift/api/project/v1"
	quotav1 "github.com/openshift/api/quota/v1"
	routev1 "github.com/openshift/api/route/v1"
	securityv1 "github.com/openshift/api/security/v1"
	templatev1 "github.com/openshift/api/template/v1"
	userv1 "github.com/openshift/api/user/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groups returns, for each API group that Slipway adds to Kubernetes, the function that registers
// its types. The keys are the names of folders in apigroup.
func groups() map[string]func(*runtime.Scheme) error {
	return map[string]func(*runtime.Scheme) error{
		"apps":          appsv1.Install,
		"authorization": authorizationv1.Install,
		"build":         buildv1.Install,
		"image":         imagev1.Install,
		"network":       networkv1.Install,
		"oauth":         oauthv1.Install,
		"project":       projectv1.Install,
		"quota":         quotav1.Install,
		"route":         routev1.Install,
		"security":      securityv1.Install,
		"template":      templatev1.Install,
		"user":          userv1.Install,
	}
}

// apiPages adds a page for each API group.
func apiPages(all pages) error {
	index := &strings.Builder{}
	index.WriteString("# API groups of OpenShift\n\nKubernetes' own groups are described in its documentation, and by `oc explain`.\n\n")
	for _, name := range slices.Sorted(maps.Keys(groups())) {
		scheme := runtime.NewScheme()
		if err := groups()[name](scheme); err != nil {
			return fmt.Errorf("install API group %s: %w", name, err)
		}
		version := schema.GroupVersion{Group: name + ".openshift.io", Version: "v1"}
		page := &strings.Builder{}
		fmt.Fprintf(page, "# `%s`\n", version)
		r := newTypes(page)
		if err := r.writeAll(kinds(scheme, version)...); err != nil {
			return fmt.Errorf("describe API group %s: %w", name, err)
		}
		all["api/"+name+".md"] = page.String()
		fmt.Fprintf(index, "- [`%s`](%s.md)\n", version, name)
	}
	all["api/index.md"] = index.String()
	return nil
}

// kinds returns the types of a group's objects, without lists and options.
func kinds(scheme *runtime.Scheme, version schema.GroupVersion) []reflect.Type {
	var types []reflect.Type
	for kind, t := range scheme.KnownTypes(version) {
		_, object := reflect.New(t).Interface().(metav1.Object)
		if own := strings.HasPrefix(t.PkgPath(), "github.com/openshift/api/"); own && object && !strings.HasSuffix(kind, "List") {
			types = append(types, t)
		}
	}
	slices.SortFunc(types, func(a, b reflect.Type) int { return cmp.Compare(a.Name(), b.Name()) })
	return types
}
