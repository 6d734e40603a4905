package command

import (
	"bytes"
	"strings"
	"testing"
)

// csiRun runs `slipway csi` and returns its output.
func csiRun(args ...string) (string, error) {
	command := New()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(append([]string{"csi"}, args...))
	err := command.Execute()
	return out.String(), err
}

func TestCSIManifestIsPrinted(t *testing.T) {
	out, err := csiRun("manifest", "--driver", "disk.csi.example.org", "--image", "example.org/disk:1", "--without", "snapshot")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"kind: CSIDriver", "kind: Deployment", "kind: DaemonSet", "kind: ClusterRoleBinding", "--leader-election", "/var/lib/kubelet/plugins_registry"} {
		if !strings.Contains(out, part) {
			t.Errorf("the manifest lacks %q", part)
		}
	}
	if strings.Contains(out, "volumesnapshot") {
		t.Error("the manifest has permissions for snapshots")
	}
}

func TestCSIReportsInvalidFlags(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"manifest", "--driver", "disk.csi.example.org"}, "driver image"},
		{[]string{"node"}, "--csi-address once"},
		{[]string{"controller", "--kubeconfig", "/nowhere"}, "/nowhere"},
	} {
		if _, err := csiRun(tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("slipway csi %s: %v, want %q", strings.Join(tt.args, " "), err, tt.want)
		}
	}
}
