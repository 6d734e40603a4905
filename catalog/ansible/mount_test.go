package ansible

import (
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestPodMountsSecretsAndStateOfBundle(t *testing.T) {
	b := &broker{options: Options{Secrets: []Secret{{"cloud", "db-apb"}, {"other", "web-apb"}}}, kube: fake.NewClientset(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloud"}, Data: map[string][]byte{"key": []byte("a")}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"}},
	)}
	rec := &record{ID: "one", Namespace: "shop", State: map[string]string{"count": "1"}, Operation: &operation{Name: "bundle-1", Action: updateAction, Bundle: source{Stream: "db-apb"}}}
	if err := b.copyMounts(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	pod, err := podOf(rec)
	if err != nil {
		t.Fatal(err)
	}
	b.mount(pod, rec)
	var paths []string
	for i, mount := range pod.Spec.Containers[0].VolumeMounts {
		paths = append(paths, mount.MountPath)
		if pod.Spec.Volumes[i].Name != mount.Name {
			t.Errorf("the volume of %q is %+v", mount.MountPath, pod.Spec.Volumes[i])
		}
	}
	if got := strings.Join(paths, " "); got != "/etc/apb-secrets/apb-cloud /etc/apb/state" {
		t.Errorf("the mounts are %s", got)
	}
	secrets, err := b.kube.CoreV1().Secrets("bundle-1").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(secrets.Items) != 1 || string(secrets.Items[0].Data["key"]) != "a" {
		t.Errorf("the secrets of the sandbox are %+v, %v", secrets.Items, err)
	}

	// The bundle changes its state.
	state, err := b.kube.CoreV1().ConfigMaps("bundle-1").Get(t.Context(), "bundle-1", metav1.GetOptions{})
	if err != nil || !maps.Equal(state.Data, rec.State) {
		t.Fatalf("the state is %+v, %v", state, err)
	}
	for _, tt := range []struct {
		name, value string
		binary      map[string][]byte
		want        error
	}{
		{"small", "2", nil, nil},
		{"large", strings.Repeat("a", maxState), nil, errState},
		{"large as JSON", strings.Repeat("<", maxState/6), nil, errState},
		{"binary", "2", map[string][]byte{"image": {0xff}}, errState},
	} {
		state.Data, state.BinaryData = map[string]string{"count": tt.value}, tt.binary
		if _, err := b.kube.CoreV1().ConfigMaps("bundle-1").Update(t.Context(), state, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := b.readState(t.Context(), rec); !errors.Is(err, tt.want) || rec.State["count"] != "2" {
			t.Errorf("%s: the state is %.10q: %v", tt.name, rec.State["count"], err)
		}
	}
}

func TestParametersInSecretsAreHidden(t *testing.T) {
	b := &broker{options: Options{Secrets: []Secret{{"cloud", "db-apb"}, {"missing", "db-apb"}}}, kube: fake.NewClientset(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cloud"}, Data: map[string][]byte{"key": []byte("a")}},
	)}
	s := &spec{Plans: []plan{{Parameters: []parameter{{Name: "key", Required: true}, {Name: "size"}}, BindParameters: []parameter{{Name: "key"}}}}}
	if err := b.hideSecrets(t.Context(), "db-apb", s); err != nil {
		t.Fatal(err)
	}
	if got := s.Plans[0]; len(got.Parameters) != 1 || got.Parameters[0].Name != "size" || len(got.BindParameters) != 0 {
		t.Errorf("the plan is %+v", got)
	}
}

func TestBindingOfFormerBundleWithSecretsHasNoParameters(t *testing.T) {
	b := &broker{options: Options{Secrets: []Secret{{"cloud", "db-apb"}}}}
	r := httptest.NewRequest(http.MethodPut, "/", nil)
	for stream, want := range map[string]bool{"db-apb": false, "web-apb": true} {
		rec := &record{Service: "removed", Bundle: source{Stream: stream}}
		_, err := b.bindValues(r, rec, request{Parameters: map[string]any{"ansible_python_interpreter": "/tmp/program"}})
		if (err == nil) != want {
			t.Errorf("%s: with parameters: %v", stream, err)
		}
		if _, err := b.bindValues(r, rec, request{}); err != nil {
			t.Errorf("%s: without parameters: %v", stream, err)
		}
	}
}
