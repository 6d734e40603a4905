package node

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func TestBuildProfileAllowsNestedContainersOnly(t *testing.T) {
	root := t.TempDir()
	if err := writeProfiles(root); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "seccomp", BuildProfile))
	if err != nil {
		t.Fatal(err)
	}
	var profile specs.LinuxSeccomp
	if err := json.Unmarshal(content, &profile); err != nil {
		t.Fatal(err)
	}
	allowed := func(call string) bool {
		return slices.ContainsFunc(profile.Syscalls, func(rule specs.LinuxSyscall) bool {
			return rule.Action == specs.ActAllow && slices.Contains(rule.Names, call)
		})
	}
	for call, want := range map[string]bool{
		"mount": true, "pivot_root": true, "clone3": true, "chroot": true, "seccomp": true,
		"bpf": false, "perf_event_open": false, "init_module": false, "kexec_load": false, "keyctl": false, "open_by_handle_at": false, "io_uring_setup": false,
	} {
		if allowed(call) != want {
			t.Errorf("%s is allowed: %t, want %t", call, !want, want)
		}
	}
	if profile.DefaultAction != specs.ActErrno {
		t.Errorf("the default action is %s", profile.DefaultAction)
	}
}
