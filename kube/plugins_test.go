package kube

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"
)

func TestPluginsAreEnabledDisabledAndConfigured(t *testing.T) {
	server := &APIServer{AdmissionFile: filepath.Join(t.TempDir(), "admission.json"), Plugins: []Plugin{
		{Name: "AlwaysPullImages"},
		{Name: "PodNodeSelector", Configuration: []byte(`{"clusterDefaultNodeSelector":"region=west"}`)},
		{Name: "DefaultStorageClass", Disabled: true, Configuration: []byte(`{}`)},
	}}
	options := kubeoptions.NewAdmissionOptions()
	if err := server.setPlugins(options); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(server.AdmissionFile)
	if err != nil {
		t.Fatal(err)
	}
	generic := options.GenericAdmission
	got := []any{generic.ConfigFile, generic.EnablePlugins, generic.DisablePlugins, string(content)}
	want := []any{
		server.AdmissionFile, []string{"NodeRestriction", "AlwaysPullImages", "PodNodeSelector"}, []string{"DefaultStorageClass"},
		`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AdmissionConfiguration","plugins":[{"name":"PodNodeSelector","configuration":{"clusterDefaultNodeSelector":"region=west"}}]}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plugins (-want +got):\n%s", diff)
	}
}
