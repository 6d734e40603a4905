package flexvolumedrivers

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/test/kit"
)

// password is a value in a secret that must not appear anywhere else.
const password = "the-password-of-the-storage"

// TestInlineVolumeGetsSecretGroupAndOptions uses every field of a volume source with a driver that
// supports attach. The driver's first mount call fails, and prints all of its arguments.
func TestInlineVolumeGetsSecretGroupAndOptions(t *testing.T) {
	t.Parallel()
	c := withClass(kit.Shared(t))
	d := install(t, c, "inline.example.com/disk")
	if err := os.WriteFile(filepath.Join(d.dir, "fault.mount.begin.data"), []byte(`rm "$fault"; echo "$arguments denied" >&2; exit 1`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]string{"access": d.name, "other": "Opaque"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretType(kind), StringData: map[string]string{"password": password}}
		if _, err := c.Client.CoreV1().Secrets(c.Namespace).Create(context.Background(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	uses := func(secret string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: ptr.To[int64](1001), FSGroup: ptr.To[int64](2002)}
			pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{
				Driver: d.name, FSType: "ext4", SecretRef: &corev1.LocalObjectReference{Name: secret}, Options: map[string]string{"address": `"10.0.0.1" & more`},
			}}
		}
	}
	d.pod("inline", uses("access"))
	waitEvent(c, "FailedMount", " denied")
	pod := c.WaitPodRunning("inline")
	encoded := base64.StdEncoding.EncodeToString([]byte(password))
	want := `{"address":"\"10.0.0.1\" \u0026 more","kubernetes.io/fsGroup":"2002","kubernetes.io/fsType":"ext4","kubernetes.io/mounterArgs.FsGroup":"2002",` +
		`"kubernetes.io/pod.name":"inline","kubernetes.io/pod.namespace":"` + c.Namespace + `","kubernetes.io/pod.uid":"` + string(pod.UID) + `",` +
		`"kubernetes.io/pvOrVolumeName":"data","kubernetes.io/readwrite":"rw","kubernetes.io/secret/password":"` + encoded + `",` +
		`"kubernetes.io/serviceAccount.name":"default"}`
	path := c.Path("kubelet", "pods", string(pod.UID), "volumes", d.escaped(), "data")
	if calls := d.calls(); strings.Count(calls, "mount "+path+" "+want+"\n") != 2+strings.Count(calls, "unmount "+path) {
		t.Errorf("mount was not called twice with %s %s:\n%s", path, want, calls)
	}
	if group := c.Exec("inline", "stat", "-c", "%g", "/data/starts"); group != "2002\n" {
		t.Errorf("the files have the group %s", group)
	}
	for _, op := range []string{"attach", "mountdevice"} {
		if n := strings.Count("\n"+d.calls(), "\n"+op+" "); n != 1 {
			t.Errorf("%s was called %d times", op, n)
		}
	}
	checkHidden(t, c, password, encoded)
	d.deletePods("inline")
	d.waitReleased()

	d.pod("refused", uses("other"))
	waitEvent(c, "FailedMount", `its type is "Opaque"`)
	d.deletePods("refused")
	d.waitReleased()
}

// checkHidden checks that logs and the namespace's objects do not contain the secrets.
func checkHidden(t *testing.T, c *kit.Cluster, secrets ...string) {
	t.Helper()
	texts := map[string]string{"objects": c.OC("get", "events,pods", "--output", "yaml")}
	logs, err := filepath.Glob(c.Path("log", "*.log"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs %q, error %v", logs, err)
	}
	for _, path := range logs {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(content)
	}
	for name, text := range texts {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s contains the secret in the form %q", name, secret)
			}
		}
	}
}

func TestReadOnlyVolumeCannotBeWritten(t *testing.T) {
	t.Parallel()
	c := withClass(kit.Shared(t))
	d := install(t, c, "readonly.example.com/disk")
	d.claim("volume", func(pv *corev1.PersistentVolume) { pv.Spec.FlexVolume.ReadOnly = true })
	d.pod("volume", nil)
	d.claim("claim", nil)
	d.pod("claim", func(pod *corev1.Pod) { pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true })
	for _, name := range []string{"volume", "claim"} {
		c.WaitPodRunning(name)
		if _, err := c.TryOC("exec", name, "--", "touch", "/data/new"); err == nil || !strings.Contains(err.Error(), "Read-only") {
			t.Errorf("write to read-only %s: %v", name, err)
		}
		for _, op := range []string{"mountdevice", "mount"} {
			for _, call := range d.callsOf(op, name) {
				if !strings.Contains(call, `"kubernetes.io/readwrite":"ro"`) {
					t.Errorf("call %s", call)
				}
			}
			d.wasCalled(op, name, 1)
		}
	}
	d.remove("volume", "claim")
}
