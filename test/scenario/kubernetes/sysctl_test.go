package kubernetes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// withSysctl returns a manifest for a pod that sets a sysctl.
func withSysctl(name, sysctl, value string) string {
	return pod(name, sleeper(), "securityContext: {sysctls: [{name: "+sysctl+", value: '"+value+"'}]}")
}

// TestPodsSetSysctlsOfNode sets safe and unsafe sysctls. An unsafe sysctl requires that both the
// node and the pod's security context constraint allow it.
func TestPodsSetSysctlsOfNode(t *testing.T) {
	c := kit.Shared(t)
	makePod(t, c, withSysctl("unsafe", "kernel.msgmax", "16384"))
	makePod(t, c, withSysctl("other", "kernel.sem", "250 32000 32 128"))
	c.WaitPodRunning("unsafe")
	if got := strings.TrimSpace(c.Exec("unsafe", "cat", "/proc/sys/kernel/msgmax")); got != "16384" {
		t.Errorf("the pod has kernel.msgmax %s", got)
	}
	if got := waitPhase(c, "other", corev1.PodFailed); got.Status.Reason != "SysctlForbidden" {
		t.Errorf("a pod with a sysctl that the node does not allow is rejected with %q: %s", got.Status.Reason, got.Status.Message)
	}

	c.OC("policy", "add-role-to-user", "edit", "alice")
	as := func(manifest string) error {
		_, err := c.TryOCWithInput(manifest, "create", "-f", "-", "--as=alice", "--as-group=system:authenticated")
		return err
	}
	if err := as(withSysctl("safe", "net.ipv4.tcp_syncookies", "0")); err != nil {
		t.Error(err)
	}
	c.WaitPodRunning("safe")
	if got := strings.TrimSpace(c.Exec("safe", "cat", "/proc/sys/net/ipv4/tcp_syncookies")); got != "0" {
		t.Errorf("the pod has net.ipv4.tcp_syncookies %s", got)
	}
	if err := as(withSysctl("refused", "kernel.msgmax", "16384")); err == nil || !strings.Contains(err.Error(), "kernel.msgmax") {
		t.Errorf("a pod of a user with an unsafe sysctl: %v", err)
	}
	c.Apply(`
apiVersion: security.openshift.io/v1
kind: SecurityContextConstraints
metadata: {name: tuned}
allowedUnsafeSysctls: ["kernel.msg*"]
runAsUser: {type: MustRunAsRange}
seLinuxContext: {type: MustRunAs}
fsGroup: {type: MustRunAs}
supplementalGroups: {type: RunAsAny}
volumes: [configMap, emptyDir, projected, secret]
users: [alice]
`)
	t.Cleanup(func() { c.OC("delete", "scc", "tuned") })
	if err := as(withSysctl("tuned", "kernel.msgmax", "16384")); err != nil {
		t.Error(err)
	}
	if got := c.WaitPodRunning("tuned").Annotations["openshift.io/scc"]; got != "tuned" {
		t.Errorf("the pod has the constraint %q", got)
	}
}
