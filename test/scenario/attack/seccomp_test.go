package attack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// sleeper returns a pod whose container only waits, so that tests can run commands in it.
// annotations and context are YAML maps; context is the security context.
func sleeper(name, annotations, context string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, annotations: %s}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: %s
  containers: [{name: main, image: %s, command: [sleep, infinity]}]
`, name, annotations, context, kit.ToolsImage)
}

// seccompMode returns a container's seccomp mode from the kernel: "0" means off, and "2" means that
// a filter is active.
func seccompMode(c *kit.Cluster, pod string) string {
	for line := range strings.Lines(c.Exec(pod, "cat", "/proc/self/status")) {
		if mode, ok := strings.CutPrefix(line, "Seccomp:"); ok {
			return strings.TrimSpace(mode)
		}
	}
	return ""
}

func TestTenantGetsNoCapabilitiesInUserNamespace(t *testing.T) {
	s := tenants(t)
	pods := map[string]string{
		"plain":         sleeper("plain", "{}", "{}"),
		"asks":          sleeper("asks", "{}", "{seccompProfile: {type: RuntimeDefault}}"),
		"openshift-3":   sleeper("openshift-3", "{seccomp.security.alpha.kubernetes.io/pod: docker/default}", "{}"),
		"one-container": sleeper("one-container", "{container.seccomp.security.alpha.kubernetes.io/main: runtime/default}", "{}"),
	}
	for _, pod := range pods {
		s.mallory.May("POST", kit.CorePath(s.evil, "pods"), pod)
	}
	evil := s.In(s.evil)
	for name := range pods {
		evil.WaitPodRunning(name)
		if mode := seccompMode(evil, name); mode != "2" {
			t.Errorf("%s: seccomp mode %q, want 2", name, mode)
		}
		if output, err := evil.TryOC("exec", name, "--", "unshare", "-Urnm", "cat", "/proc/self/status"); err == nil {
			t.Errorf("%s: unshare succeeds:\n%s", name, output)
		} else if !strings.Contains(err.Error(), "Operation not permitted") {
			t.Errorf("%s: unshare: %v, want it to be forbidden", name, err)
		}
	}
}

func TestTenantCannotRemoveSystemCallFilter(t *testing.T) {
	s := tenants(t)
	pods := kit.CorePath(s.evil, "pods")
	for _, profile := range []struct{ field, annotation string }{
		{"{type: Unconfined}", "unconfined"},
		{"{type: Localhost, localhostProfile: slipway/build.json}", "localhost/slipway/build.json"},
	} {
		const reason = "is not allowed; allowed are runtime/default"
		s.mallory.MayNot("POST", pods, sleeper("pod", "{}", "{seccompProfile: "+profile.field+"}"), reason)
		s.mallory.MayNot("POST", pods, sleeper("pod", "{seccomp.security.alpha.kubernetes.io/pod: "+profile.annotation+"}", "{}"), reason)
		s.mallory.MayNot("POST", pods, sleeper("pod", "{container.seccomp.security.alpha.kubernetes.io/main: "+profile.annotation+"}", "{}"), reason)
		container := strings.Replace(sleeper("pod", "{}", "{}"), "command:", "securityContext: {seccompProfile: "+profile.field+"}, command:", 1)
		s.mallory.MayNot("POST", pods, container, reason)
	}
}

// TestAdministratorCanRemoveSystemCallFilter checks that privileged pods can still use the system
// calls that the filter blocks for attackers.
func TestAdministratorCanRemoveSystemCallFilter(t *testing.T) {
	s := kit.Shared(t)
	s.Apply(sleeper("unconfined", "{}", "{seccompProfile: {type: Unconfined}}"))
	s.Apply(strings.Replace(sleeper("privileged", "{}", "{}"), "command:", "securityContext: {privileged: true}, command:", 1))
	for _, name := range []string{"unconfined", "privileged"} {
		s.WaitPodRunning(name)
		if mode := seccompMode(s, name); mode != "0" {
			t.Errorf("%s: seccomp mode %q, want 0", name, mode)
		}
		s.Exec(name, "unshare", "-Urnm", "true")
	}
}

func TestTenantCannotRemoveAppArmorProfile(t *testing.T) {
	s := tenants(t)
	pods := kit.CorePath(s.evil, "pods")
	for _, profile := range []struct{ field, annotation string }{
		{"{type: Unconfined}", "unconfined"},
		{"{type: Localhost, localhostProfile: weak}", "localhost/weak"},
	} {
		const reason = "is not allowed; leave the profile out"
		s.mallory.MayNot("POST", pods, sleeper("pod", "{}", "{appArmorProfile: "+profile.field+"}"), reason)
		s.mallory.MayNot("POST", pods, sleeper("pod", "{container.apparmor.security.beta.kubernetes.io/main: "+profile.annotation+"}", "{}"), reason)
		container := strings.Replace(sleeper("pod", "{}", "{}"), "command:", "securityContext: {appArmorProfile: "+profile.field+"}, command:", 1)
		s.mallory.MayNot("POST", pods, container, reason)
	}
}
