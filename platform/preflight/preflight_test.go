package preflight

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// host is a fake machine with the requirements of a host. The machine consists of files that a test
// modifies.
type host struct {
	Machine
	want Requirements
	fs   unix.Statfs_t
	// broken maps the features that the kernel does not support to errors. busy maps the addresses
	// that are in use to errors.
	broken map[Feature]error
	busy   map[string]error
}

// healthy returns a host that meets all requirements.
func healthy(t *testing.T) *host {
	t.Helper()
	h := &host{broken: map[Feature]error{}, busy: map[string]error{}}
	h.Root, h.Path, h.Now = t.TempDir(), t.TempDir(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	h.fs = unix.Statfs_t{Bsize: 4096, Bavail: 1 << 30, Files: 1 << 20, Ffree: 1 << 19}
	h.Try = func(_ context.Context, feature Feature, _ string) error { return h.broken[feature] }
	h.Statfs = func(_ string, fs *unix.Statfs_t) error { *fs = h.fs; return nil }
	h.Bind = func(_ context.Context, _ string, address netip.AddrPort) error { return h.busy[address.String()] }
	for path, content := range map[string]string{
		"etc/os-release":      "ID=debian\n",
		"dev/kmsg":            "",
		"dev/loop-control":    "",
		"proc/meminfo":        "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\n",
		"proc/swaps":          "Filename Type Size Used Priority\n",
		"proc/self/mountinfo": cgroupMounts("cpu,cpuacct", "cpuset", "devices", "freezer", "memory", "pids"),
		"proc/self/ns/ipc":    "", "proc/self/ns/mnt": "", "proc/self/ns/net": "", "proc/self/ns/pid": "", "proc/self/ns/uts": "",
	} {
		h.write(t, path, content)
	}
	for _, program := range append(Programs(), ImagePrograms()...) {
		if err := os.WriteFile(filepath.Join(h.Path, program.Name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	h.want = Requirements{
		NodeName:      "host1.example.com",
		Programs:      Programs(),
		ImagePrograms: ImagePrograms(),
		Ports:         []Port{{"API", "tcp", netip.MustParseAddrPort("0.0.0.0:8443"), "servingInfo.bindAddress", "master-config.yaml"}},
		Directories:   []Directory{{Path: t.TempDir(), Free: 2e9, Programs: true}},
		Sockets:       []string{"/var/lib/slipway/run/slipway.sock"},
		Memory:        1.5e9,
	}
	return h
}

func (h *host) write(t *testing.T, path, content string) {
	t.Helper()
	path = filepath.Join(h.Root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (h *host) remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(filepath.Join(h.Root, path)); err != nil {
		t.Fatal(err)
	}
}

func cgroupMounts(controllers ...string) string {
	var lines strings.Builder
	for i, controller := range controllers {
		fmt.Fprintf(&lines, "%d 24 0:%d / /sys/fs/cgroup/%s rw,relatime - cgroup cgroup rw,%s\n", 30+i, 30+i, controller, controller)
	}
	return lines.String()
}

func TestHealthyMachineHasNoProblem(t *testing.T) {
	h := healthy(t)
	if problems := Run(t.Context(), h.want, h.Machine); len(problems) > 0 {
		t.Errorf("found %v", problems)
	}
	t.Run("with cgroups of version 2", func(t *testing.T) {
		h.write(t, "sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n")
		h.write(t, "proc/self/mountinfo", "")
		if problems := Run(t.Context(), h.want, h.Machine); len(problems) > 0 {
			t.Errorf("found %v", problems)
		}
	})
}

func TestEveryProblemNamesRemedy(t *testing.T) {
	tests := []struct {
		name   string
		damage func(*testing.T, *host)
		want   Problem // Text and Remedy contain only parts of the expected texts
	}{
		{"not root", func(_ *testing.T, h *host) { h.UID = 1000 },
			Problem{Error, "user", "only root can", "sudo"}},
		{"program is missing", func(t *testing.T, h *host) { must(t, os.Remove(filepath.Join(h.Path, "nft"))) },
			Problem{Error, "program nft", "is not installed", "apt-get install -y nftables"}},
		{"program of an image is missing", func(t *testing.T, h *host) { must(t, os.Remove(filepath.Join(h.Path, "busybox"))) },
			Problem{Warning, "program busybox", "slipway-tools", "apt-get install -y busybox-static"}},
		{"program cannot be run", func(t *testing.T, h *host) { must(t, os.Chmod(filepath.Join(h.Path, "losetup"), 0o644)) },
			Problem{Error, "program losetup", "is not installed", "apt-get install -y mount"}},
		{"program is missing on Fedora", func(t *testing.T, h *host) {
			h.write(t, "etc/os-release", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n")
			must(t, os.Remove(filepath.Join(h.Path, "losetup")))
		}, Problem{Error, "program losetup", "is not installed", "dnf install -y util-linux"}},
		{"program is missing on another distribution", func(t *testing.T, h *host) {
			h.remove(t, "etc/os-release")
			must(t, os.Remove(filepath.Join(h.Path, "mkfs.ext4")))
		}, Problem{Error, "program mkfs.ext4", "is not installed", "install the equivalents of these Debian packages with the package manager: e2fsprogs"}},

		{"no overlay", func(_ *testing.T, h *host) { h.broken[Overlay] = unix.ENODEV },
			Problem{Error, "overlay file system", "does not work: no such device", "modprobe --all overlay\n"}},
		{"overlay on overlay", func(_ *testing.T, h *host) {
			h.broken[Overlay], h.fs.Type = unix.EINVAL, unix.OVERLAYFS_SUPER_MAGIC
		}, Problem{Error, "overlay file system", "cannot be on the overlay file system of", "--data-dir"}},
		{"no network namespaces", func(_ *testing.T, h *host) { h.broken[Namespaces] = unix.EINVAL },
			Problem{Error, "network namespaces", "does not work", "use a kernel"}},
		{"no bridges", func(_ *testing.T, h *host) { h.broken[Bridge] = unix.EOPNOTSUPP },
			Problem{Error, "bridge devices", "operation not supported", "modprobe --all bridge\n"}},
		{"no veth", func(_ *testing.T, h *host) { h.broken[Veth] = unix.EOPNOTSUPP },
			Problem{Error, "veth devices", "operation not supported", "modprobe --all veth\n"}},
		{"no nftables", func(_ *testing.T, h *host) { h.broken[NFTables] = syscall.ENOENT },
			Problem{Error, "nftables", "no such file", "modprobe --all nf_tables nft_chain_nat"}},
		{"a container without privileges", func(_ *testing.T, h *host) { h.broken[Bridge] = unix.EPERM },
			Problem{Error, "bridge devices", "cannot be used by this user", "--privileged"}},
		{"no pid namespaces", func(t *testing.T, h *host) { h.remove(t, "proc/self/ns/pid") },
			Problem{Error, "pid namespaces", "are not part of this kernel", "use a kernel"}},
		{"no kernel messages", func(t *testing.T, h *host) { h.remove(t, "dev/kmsg") },
			Problem{Error, "device /dev/kmsg", "is missing", "mknod /dev/kmsg c 1 11"}},
		{"no loop devices", func(t *testing.T, h *host) { h.remove(t, "dev/loop-control") },
			Problem{Warning, "device /dev/loop-control", "image files cannot be mounted", "modprobe loop"}},

		{"cgroups are not mounted", func(t *testing.T, h *host) { h.write(t, "proc/self/mountinfo", "") },
			Problem{Error, "cgroups", "are not mounted", "mount -t cgroup2"}},
		{"a controller of version 1 is missing", func(t *testing.T, h *host) {
			h.write(t, "proc/self/mountinfo", cgroupMounts("cpu,cpuacct", "cpuset", "devices", "memory", "pids"))
		}, Problem{Error, "cgroup freezer", "is not available", "cgroupfs-mount"}},
		{"the memory controller of version 2 is disabled", func(t *testing.T, h *host) {
			h.write(t, "sys/fs/cgroup/cgroup.controllers", "cpuset cpu io pids\n")
		}, Problem{Error, "cgroup memory", "is not available", "cgroup_enable=memory"}},

		{"too little memory", func(t *testing.T, h *host) { h.write(t, "proc/meminfo", "MemAvailable: 1000000 kB\n") },
			Problem{Error, "memory", "1024 MB are available, 1500 MB are needed", "ps -eo rss"}},
		{"swap", func(t *testing.T, h *host) { h.write(t, "proc/swaps", "Filename Type\n/dev/sda2 partition 1 0 -2\n") },
			Problem{Warning, "swap", "is enabled", "swapoff --all"}},
		{"inotify is limited and cannot be raised", func(t *testing.T, h *host) {
			h.write(t, "proc/sys/fs/inotify/max_user_instances", "128\n")
			h.fs.Flags = unix.ST_RDONLY
		}, Problem{Warning, "limit fs.inotify.max_user_instances", "is 128 and cannot be raised to 8192", "sysctl -w fs.inotify.max_user_instances=8192"}},
		{"clock was not set", func(_ *testing.T, h *host) { h.Now = time.Unix(0, 0) },
			Problem{Error, "clock", "shows the year 1970", "timedatectl"}},
		{"node name is invalid", func(_ *testing.T, h *host) { h.want.NodeName = "My_Host" },
			Problem{Error, "node name", `"My_Host" is not a DNS name`, "set nodeName in node-config.yaml"}},

		{"too little space", func(_ *testing.T, h *host) { h.fs.Bavail = 1000 },
			Problem{Error, "directory ", "has 4 MB free on its disk, 2000 MB are needed", "du -xh"}},
		{"too few inodes", func(_ *testing.T, h *host) { h.fs.Ffree = 12 },
			Problem{Error, "directory ", "has room for 12 more files (inodes)", "du -xh"}},
		{"directory cannot be created", func(t *testing.T, h *host) {
			file := filepath.Join(t.TempDir(), "file")
			must(t, os.WriteFile(file, nil, 0o600))
			h.want.Directories[0].Path = filepath.Join(file, "data")
		}, Problem{Error, "directory ", "is a file", "--data-dir"}},
		{"socket path is too long", func(_ *testing.T, h *host) {
			h.want.Sockets = append(h.want.Sockets, "/"+strings.Repeat("a", 100)+"/slipway.sock")
		}, Problem{Error, "socket slipway.sock", "has a path of 114 bytes, and the kernel allows 107", "7 bytes shorter"}},

		{"port is busy", func(_ *testing.T, h *host) { h.busy["0.0.0.0:8443"] = unix.EADDRINUSE },
			Problem{Error, "port 8443", "for API is used by another process", "set another port in servingInfo.bindAddress of master-config.yaml"}},
		{"binding the port is not permitted", func(_ *testing.T, h *host) { h.busy["0.0.0.0:8443"] = unix.EACCES },
			Problem{Error, "port 8443", "for API cannot be used: permission denied", "set another port in servingInfo.bindAddress of master-config.yaml"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := healthy(t)
			tt.damage(t, h)
			problems := Run(t.Context(), h.want, h.Machine)
			if len(problems) != 1 {
				t.Fatalf("got %d problems, want one: %v", len(problems), problems)
			}
			got := problems[0]
			if got.Severity != tt.want.Severity || !strings.HasPrefix(got.Subject, tt.want.Subject) ||
				!strings.Contains(got.Text, tt.want.Text) || !strings.Contains(got.Remedy, tt.want.Remedy) {
				t.Errorf("problem (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestLimitThatHostRaisesIsAccepted(t *testing.T) {
	h := healthy(t)
	h.write(t, "proc/sys/fs/inotify/max_user_instances", "128\n")
	if problems := Run(t.Context(), h.want, h.Machine); len(problems) > 0 {
		t.Errorf("found %v", problems)
	}
}

func TestAddressThatDoesNotExistYetIsFree(t *testing.T) {
	h := healthy(t)
	h.busy["0.0.0.0:8443"] = unix.EADDRNOTAVAIL
	if problems := Run(t.Context(), h.want, h.Machine); len(problems) > 0 {
		t.Errorf("found %v", problems)
	}
}

func TestPreflightWaitsForPortOfEndingProcess(t *testing.T) {
	h := healthy(t)
	attempts := 0
	h.Bind = func(context.Context, string, netip.AddrPort) error {
		if attempts++; attempts <= 2 {
			return unix.EADDRINUSE
		}
		return nil
	}
	if problems := Run(t.Context(), h.want, h.Machine); len(problems) > 0 {
		t.Errorf("found %v", problems)
	}
}

func TestProblemsAreReportedTogether(t *testing.T) {
	h := healthy(t)
	h.write(t, "proc/swaps", "Filename Type\n/dev/sda2 partition 1 0 -2\n")
	h.busy["0.0.0.0:8443"] = unix.EADDRINUSE
	for _, program := range []string{"losetup", "nft", "umount"} {
		must(t, os.Remove(filepath.Join(h.Path, program)))
	}
	h.want.Directories = append(h.want.Directories, Directory{Path: h.want.Directories[0].Path, Free: 2e9})
	h.fs.Bavail = 0
	var got []string
	problems := Run(t.Context(), h.want, h.Machine)
	for _, problem := range problems {
		subject, _, _ := strings.Cut(problem.Subject, "/")
		got = append(got, string(problem.Severity)+" "+subject)
	}
	want := []string{"error program nft", "error program umount", "error program losetup", "error directory ", "error port 8443", "warning swap"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	for _, problem := range problems[:3] {
		if problem.Remedy != "apt-get install -y mount nftables" {
			t.Errorf("remedy of %s is %q, want one command for all", problem.Subject, problem.Remedy)
		}
	}
	if !Failed(problems) || Failed(problems[5:]) {
		t.Error("Failed must return true for errors and false for warnings")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
