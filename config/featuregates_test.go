package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGraduatedFeatureGatesAreIgnored(t *testing.T) {
	loadGates := func(gates string) (*Config, error) {
		file := filepath.Join(t.TempDir(), "config.yaml")
		write(t, file, `
apiVersion: v1
kind: MasterConfig
kubernetesMasterConfig:
  apiServerArguments: {feature-gates: [`+gates+`]}
---
apiVersion: v1
kind: NodeConfig
kubeletArguments: {feature-gates: ["BlockVolume=true", "RotateKubeletServerCertificate=true,PodPriority=true"]}
`)
		return LoadAnyway(t.TempDir(), file)
	}
	c, err := loadGates("BlockVolume=true")
	if err != nil {
		t.Fatal(err)
	}
	if gates, ok := c.Master.KubernetesMasterConfig.APIServerArguments[featureGates]; ok {
		t.Errorf("gates of the API server: %q", gates)
	}
	if diff := cmp.Diff([]string{"RotateKubeletServerCertificate=true"}, []string(c.Node.KubeletArguments[featureGates])); diff != "" {
		t.Errorf("gates of the kubelet (-want +got):\n%s", diff)
	}
	for _, want := range []string{
		"MasterConfig: kubernetesMasterConfig.apiServerArguments.feature-gates BlockVolume, because the feature is always enabled",
		"NodeConfig: kubeletArguments.feature-gates PodPriority, because the feature is always enabled",
	} {
		if !slices.Contains(c.Ignored(), want) {
			t.Errorf("ignored %q, want %q", c.Ignored(), want)
		}
	}
	if _, err := loadGates("BlockVolume=false"); err == nil || !strings.Contains(err.Error(), "has BlockVolume=false, but this feature is always enabled; remove it") {
		t.Errorf("disable a feature that is always enabled: got error %v", err)
	}
}

func TestContradictingGatesOfOneProcessAreRejected(t *testing.T) {
	for name, tt := range map[string]struct{ api, controllers, want string }{
		"one component": {"APIResponseCompression=false", "", ""},
		"same value":    {"APIResponseCompression=false, StorageVersionHash=true", "APIResponseCompression=false", ""},
		"two values":    {"APIResponseCompression=false", "APIResponseCompression=true", "APIResponseCompression is true, but kubernetesMasterConfig.apiServerArguments.feature-gates sets false"},
		"no value":      {"APIResponseCompression", "", `"APIResponseCompression" is not NAME=true or NAME=false`},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Config{Master: &MasterConfig{}}
			c.Master.KubernetesMasterConfig.APIServerArguments = map[string][]string{"feature-gates": {tt.api}}
			c.Master.KubernetesMasterConfig.ControllerArguments = map[string][]string{"feature-gates": {tt.controllers}}
			gates, err := c.ControlPlaneGates()
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error is %v, want %q", err, tt.want)
				}
				return
			}
			if value, exists := gates["APIResponseCompression"]; err != nil || !exists || value {
				t.Errorf("gates are %v, %v", gates, err)
			}
		})
	}
}
