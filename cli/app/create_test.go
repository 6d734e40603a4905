package app

import (
	"strings"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"

	"github.com/slipway-platform/slipway/cli/app/newapp"
	"github.com/slipway-platform/slipway/internal/apitest"
)

// knownKinds is a factory whose REST mapper supports image streams and services without discovery.
type knownKinds struct {
	util.Factory
	client dynamic.Interface
}

func (k knownKinds) DynamicClient() (dynamic.Interface, error) { return k.client, nil }

func (knownKinds) ToRESTMapper() (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, imagev1.GroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Service"), meta.RESTScopeNamespace)
	mapper.Add(imagev1.GroupVersion.WithKind("ImageStream"), meta.RESTScopeNamespace)
	return mapper, nil
}

func TestOutputFormatDecidesWhatIsCreated(t *testing.T) {
	const names = "imagestream.image.openshift.io/shop\nservice/shop\n"
	for name, tt := range map[string]struct {
		format  string
		dryRun  bool
		created int
		output  string
	}{
		"messages":              {"", false, 2, "--> Creating resources ...\n    imagestream.image.openshift.io \"shop\" created\n    service \"shop\" created\n--> Success\n"},
		"messages of a dry run": {"", true, 0, "    service \"shop\" created (dry run)\n--> Success (dry run)\n"},
		"names":                 {"name", false, 2, names},
		"names of a dry run":    {"name", true, 0, names},
		"manifest":              {"yaml", false, 0, "kind: List"},
	} {
		server := apitest.Start(t)
		client, err := dynamic.NewForConfig(server.Config())
		if err != nil {
			t.Fatal(err)
		}
		streams, _, out, problems := genericiooptions.NewTestIOStreams()
		o := &newApp{
			IOStreams: streams, factory: knownKinds{client: client}, dryRun: tt.dryRun,
			print: genericclioptions.NewPrintFlags("created").WithTypeSetter(scheme.Scheme).WithDefaultOutput(tt.format),
		}
		err = o.create(t.Context(), &newapp.Plan{Namespace: "shop"}, []*unstructured.Unstructured{
			parse(t, "{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: shop}}"),
			parse(t, "{apiVersion: v1, kind: Service, metadata: {name: shop}}"),
		})
		if got := out.String(); err != nil || !strings.Contains(got, tt.output) || tt.format == "name" && got != names {
			t.Errorf("%s: %v %s\n%s", name, err, problems, got)
		}
		created := 0
		for _, resource := range []string{"imagestreams", "services"} {
			created += server.Count(resource, nil)
		}
		if created != tt.created {
			t.Errorf("%s: %d objects exist, want %d", name, created, tt.created)
		}
	}
}
