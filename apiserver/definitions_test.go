package apiserver

import (
	"runtime"
	"testing"
	"weak"

	routev1 "github.com/openshift/api/route/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

func TestDocumentsDoNotKeepDefinitions(t *testing.T) {
	var kept []weak.Pointer[spec.SchemaOrArray]
	describe := func(common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		items := new(spec.SchemaOrArray)
		kept = append(kept, weak.Make(items))
		return map[string]common.OpenAPIDefinition{"Things": {Schema: spec.Schema{SchemaProps: spec.SchemaProps{Items: items}}}}
	}
	namer := openapi.NewDefinitionNamer(apiruntime.NewScheme())
	v2, v3 := genericserver.DefaultOpenAPIConfig(describe, namer), genericserver.DefaultOpenAPIV3Config(describe, namer)
	KeepNoDefinitions(v2, v3)
	if _, err := builder.BuildOpenAPISpecFromRoutes(nil, v2); err != nil {
		t.Fatal(err)
	}
	if _, err := builder3.BuildOpenAPISpecFromRoutes(nil, v3); err != nil {
		t.Fatal(err)
	}
	v3.Definitions = nil
	runtime.GC()
	if len(kept) != 2 {
		t.Fatalf("the definitions were created %d times, want once for each version", len(kept))
	}
	for i, definitions := range kept {
		if definitions.Value() != nil {
			t.Errorf("the definitions of version %d remain in memory", i+2)
		}
	}
	runtime.KeepAlive(v2)
	runtime.KeepAlive(v3)
}

func TestInstalledGroupsReleaseDefinitions(t *testing.T) {
	scheme := apiruntime.NewScheme()
	if err := routev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	metav1.AddToGroupVersion(scheme, legacyVersion)
	codecs := serializer.NewCodecFactory(scheme)
	config := genericserver.NewConfig(codecs)
	config.LoopbackClientConfig = &rest.Config{}
	config.ExternalAddress = "192.0.2.10:8443"
	config.EffectiveVersion = basecompatibility.NewEffectiveVersionFromString("1.37", "", "")
	config.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(
		func(common.ReferenceCallback) map[string]common.OpenAPIDefinition { return nil }, openapi.NewDefinitionNamer(scheme))
	server, err := config.Complete(nil).New("test", genericserver.NewEmptyDelegate())
	if err != nil {
		t.Fatal(err)
	}
	group := genericserver.NewDefaultAPIGroupInfo(routev1.GroupName, scheme, metav1.ParameterCodec, codecs)
	if err := server.InstallAPIGroup(&group); err != nil {
		t.Fatal(err)
	}
	if group.StaticOpenAPISpec == nil {
		t.Fatal("the group has no definitions to release")
	}
	server.RegisterDestroyFunc(func() {})
	if released := ReleaseDefinitions(server); released != 1 || group.StaticOpenAPISpec != nil {
		t.Errorf("%d groups released their definitions, want 1; the group has %v", released, group.StaticOpenAPISpec)
	}
}
