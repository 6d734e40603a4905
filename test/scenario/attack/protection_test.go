package attack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestPodsCannotUseReservedResources checks the node's default limits on pods.
func TestPodsCannotUseReservedResources(t *testing.T) {
	s := tenants(t)
	s.mallory.May("POST", kit.CorePath(s.evil, "pods"), sleeper("sleeper", "{}", "{}"))
	evil := s.In(s.evil)
	evil.WaitPodRunning("sleeper")
	group, err := podGroup(t.Context(), evil, "sleeper", "pids")
	if err != nil {
		t.Fatal(err)
	}
	if limit := number(t, filepath.Join(group, "pids.max")); limit != 4096 {
		t.Errorf("a pod can have %d processes, want 4096", limit)
	}
	node := s.Status().Nodes[0].Name
	for _, process := range s.Status().Processes {
		groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", process.PID))
		if err != nil || !strings.Contains(string(groups), ":"+s.CgroupRoot+"/platform/"+process.Name+"\n") {
			t.Errorf("%s is in the cgroups\n%s%v", process.Name, groups, err)
		}
	}
	object, err := s.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		capacity, allocatable := object.Status.Capacity[resource], object.Status.Allocatable[resource]
		if allocatable.Cmp(capacity) >= 0 || allocatable.Sign() <= 0 {
			t.Errorf("pods can have %s of %s of %s", allocatable.String(), capacity.String(), resource)
		}
	}
	// Check the limits on all pods together. In cgroup v2, one directory contains the files of all
	// controllers.
	all := filepath.Dir(filepath.Dir(group))
	maximum := number(t, "/proc/sys/kernel/pid_max")
	if limit := number(t, filepath.Join(all, "pids.max")); limit >= maximum {
		t.Errorf("pods can have %d of %d processes", limit, maximum)
	}
	if of := strings.Replace(all, "/pids/", "/cpu/", 1); of != all {
		pods, platform := number(t, filepath.Join(of, "cpu.shares")), number(t, filepath.Join(filepath.Dir(of), "platform", "cpu.shares"))
		if platform <= pods {
			t.Errorf("pods have %d shares of the processors and the platform %d", pods, platform)
		}
		limit := number(t, filepath.Join(strings.Replace(all, "/pids/", "/memory/", 1), "memory.limit_in_bytes"))
		if capacity := object.Status.Capacity[corev1.ResourceMemory]; limit >= capacity.Value() {
			t.Errorf("pods can have %d of %d bytes of memory", limit, capacity.Value())
		}
	}
}

// number parses a procfs or cgroup file that contains a single number.
func number(t *testing.T, path string) int64 {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	value, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	return value
}

// podGroup returns the directory of a pod's cgroup in a controller's hierarchy.
func podGroup(ctx context.Context, c *kit.Cluster, name, controller string) (string, error) {
	pod, err := c.Client.CoreV1().Pods(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	for _, hierarchy := range []string{"/sys/fs/cgroup/" + controller, "/sys/fs/cgroup"} {
		groups, err := filepath.Glob(hierarchy + c.CgroupRoot + "/kubepods/*/pod" + string(pod.UID))
		if err != nil {
			return "", err
		}
		if len(groups) > 0 {
			return groups[0], nil
		}
	}
	return "", errors.New("the pod has no cgroup")
}

// TestControlPlaneLacksCapabilities checks the capability sets of each thread in the running
// control plane process, because every thread has its own sets.
func TestControlPlaneLacksCapabilities(t *testing.T) {
	c := kit.Shared(t)
	for _, process := range c.Status().Processes {
		if process.Name != "control-plane" {
			continue
		}
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", process.PID))
		if err != nil || len(threads) == 0 {
			t.Fatalf("the control plane has the threads %v, %v", threads, err)
		}
		for _, thread := range threads {
			status, err := os.ReadFile(thread)
			if errors.Is(err, os.ErrNotExist) {
				continue // the thread has exited
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, set := range []string{"CapEff", "CapPrm", "CapBnd"} {
				_, rest, _ := strings.Cut(string(status), "\n"+set+":\t")
				text, _, _ := strings.Cut(rest, "\n")
				capabilities, err := strconv.ParseUint(text, 16, 64)
				if err != nil {
					t.Fatalf("read %s of %s: %v", set, thread, err)
				}
				for name, bit := range map[string]int{"SYS_PTRACE": unix.CAP_SYS_PTRACE, "SYS_BOOT": unix.CAP_SYS_BOOT, "SYS_TIME": unix.CAP_SYS_TIME, "MAC_ADMIN": unix.CAP_MAC_ADMIN, "BPF": unix.CAP_BPF} {
					if capabilities&(1<<bit) != 0 {
						t.Errorf("%s of %s contains %s", set, thread, name)
					}
				}
			}
		}
	}
}
