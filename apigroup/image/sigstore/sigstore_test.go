package sigstore

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/outbound"
)

const id = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// storeDirectory returns a directory that contains one file for each of the contents.
func storeDirectory(t *testing.T, contents ...string) string {
	t.Helper()
	dir := t.TempDir()
	for n, content := range contents {
		if err := os.WriteFile(filepath.Join(dir, string(rune('a'+n))+".yaml"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSignaturesOfStoreAreImported(t *testing.T) {
	broken := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number, ok := strings.CutPrefix(r.URL.Path, "/store/team/app@"+strings.Replace(id, ":", "=", 1)+"/signature-")
		switch {
		case !ok || number > "2":
			http.NotFound(w, r)
		case broken && number == "2":
			w.WriteHeader(http.StatusBadGateway)
		default:
			_, _ = w.Write([]byte("signature " + number))
		}
	}))
	t.Cleanup(server.Close)
	image := &imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: id}, DockerImageReference: "registry.example.com/team/app@" + id}
	importer := &Importer{Outbound: outbound.New(outbound.Policy{}), Directory: storeDirectory(t, "docker: {registry.example.com: {sigstore: "+server.URL+"/store}}")}
	imported := func(image *imagev1.Image) (contents, names []string, err error) {
		client := imagefake.NewClientset(image)
		err = importer.reconcile(t.Context(), client.ImageV1(), id)
		for _, action := range client.Actions() {
			if create, ok := action.(clienttesting.CreateAction); ok {
				signature := create.GetObject().(*imagev1.ImageSignature)
				contents, names = append(contents, string(signature.Content)), append(names, signature.Name)
			}
		}
		return contents, names, err
	}
	contents, names, err := imported(image)
	if err == nil || err.Error() != controller.RequeueAfter(retryInterval).Error() || !slices.Equal(contents, []string{"signature 1", "signature 2"}) {
		t.Errorf("imported are %q, %v", contents, err)
	}
	if _, second, _ := imported(image); !slices.Equal(names, second) || names[0] == names[1] || len(names[0]) != len(id+"@")+32 {
		t.Errorf("the names are %q and %q", names, second)
	}
	broken = true
	if contents, _, err := imported(image); err == nil || !strings.Contains(err.Error(), "502") || !slices.Equal(contents, []string{"signature 1"}) {
		t.Errorf("a store with a failing server: %q, %v", contents, err)
	}
	pushed := image.DeepCopy()
	pushed.Annotations = map[string]string{record.Managed: "true"}
	if contents, _, err := imported(pushed); err != nil || contents != nil {
		t.Errorf("an image of the cluster's registry: %q, %v", contents, err)
	}
}
