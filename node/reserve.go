package node

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"

	"github.com/slipway-platform/slipway/internal/arguments"
	"github.com/slipway-platform/slipway/internal/diskspace"
)

// PodPidsLimit is the maximum number of processes and threads per pod
// (kubeletArguments.pod-max-pids). OpenShift has the same default.
const PodPidsLimit = 4096

// The maximum amounts of a machine's resources that are reserved for the platform. On small
// machines, reserveOf reserves smaller amounts.
const (
	maxReservedMemory = 1 << 30
	maxReservedPIDs   = 8192
	maxReservedDisk   = 10 << 30
	// reservedMilliCPU is the amount of CPU that is reserved per CPU core, in millicores.
	reservedMilliCPU = 50
)

// Reserve is the part of a machine's resources that is reserved for the platform and the system,
// and that pods cannot use.
type Reserve struct {
	MilliCPU int
	// Memory and Disk are in bytes.
	Memory, Disk uint64
	// PIDs is the number of processes and threads.
	PIDs uint64
}

// ReserveOf computes this machine's reserve. Disk is a fraction of the size of dir's file system.
// dir need not exist yet. It must be the kubelet's directory, because the kubelet does not start if
// Disk exceeds the size of that directory's file system.
func ReserveOf(dir string) (Reserve, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return Reserve{}, fmt.Errorf("read memory size: %w", err)
	}
	var disk unix.Statfs_t
	err := unix.Statfs(dir, &disk)
	for ; errors.Is(err, unix.ENOENT) && dir != filepath.Dir(dir); err = unix.Statfs(dir, &disk) {
		dir = filepath.Dir(dir)
	}
	if err != nil {
		return Reserve{}, fmt.Errorf("read size of disk of %q: %w", dir, err)
	}
	pids, err := maxPIDs()
	if err != nil {
		return Reserve{}, err
	}
	return reserveOf(runtime.NumCPU(), info.Totalram*uint64(info.Unit), pids, disk.Blocks*uint64(disk.Bsize)), nil
}

// reserveOf reserves a quarter of the memory, a twentieth of the disk and a sixteenth of the PIDs.
// The PID reserve is so small that the kubelet evicts pods before the pods reach their common
// limit.
func reserveOf(cpus int, memory, pids, disk uint64) Reserve {
	return Reserve{
		MilliCPU: cpus * reservedMilliCPU,
		Memory:   min(memory/4, maxReservedMemory),
		PIDs:     min(pids/16, maxReservedPIDs),
		Disk:     min(disk/20, maxReservedDisk),
	}
}

// resources returns the reserve in the format of the kubelet's system-reserved setting.
func (r Reserve) resources() map[string]string {
	return map[string]string{
		"cpu":               strconv.Itoa(r.MilliCPU) + "m",
		"memory":            strconv.FormatUint(r.Memory, 10),
		"pid":               strconv.FormatUint(r.PIDs, 10),
		"ephemeral-storage": strconv.FormatUint(r.Disk, 10),
	}
}

// evictionHard returns the kubelet's default hard eviction thresholds plus a threshold for PIDs.
// The kubelet applies its defaults only if it has a configuration file.
func evictionHard() map[string]string {
	thresholds := maps.Clone(eviction.DefaultEvictionHard)
	thresholds["pid.available"] = "10%"
	return thresholds
}

// pullMargin is the fraction of a disk that pulls leave free in addition to the kubelet's eviction
// thresholds. It prevents pulls from causing evictions.
const pullMargin = 0.01

// PullReserve returns the disk space that image pulls leave free: the threshold at which the
// kubelet evicts pods, plus a margin. arguments are the administrator's kubelet flags.
func PullReserve(arguments arguments.Map) (diskspace.Reserve, error) {
	statements := evictionHard()
	flag := cliflag.NewLangleSeparatedMapStringString(&statements)
	for _, value := range arguments["eviction-hard"] {
		if err := flag.Set(value); err != nil {
			return diskspace.Reserve{}, fmt.Errorf("kubeletArguments.eviction-hard: %w", err)
		}
	}
	thresholds, err := eviction.ParseThresholdConfig(nil, statements, nil, nil, nil)
	if err != nil {
		return diskspace.Reserve{}, fmt.Errorf("kubeletArguments.eviction-hard: %w", err)
	}
	reserve := diskspace.Reserve{}
	for _, threshold := range thresholds {
		share := float64(threshold.Value.Percentage)
		switch threshold.Signal {
		case evictionapi.SignalNodeFsAvailable, evictionapi.SignalImageFsAvailable:
			if threshold.Value.Quantity != nil {
				reserve.Bytes = max(reserve.Bytes, threshold.Value.Quantity.Value())
			}
			reserve.Share = max(reserve.Share, share)
		case evictionapi.SignalNodeFsInodesFree, evictionapi.SignalImageFsInodesFree:
			reserve.Inodes = max(reserve.Inodes, share)
		}
	}
	reserve.Share += pullMargin
	reserve.Inodes += pullMargin
	return reserve, nil
}

// maxPIDs returns the machine's maximum number of processes and threads.
func maxPIDs() (uint64, error) {
	lowest := uint64(1) << 22 // Linux's maximum
	for _, name := range []string{"pid_max", "threads-max"} {
		content, err := os.ReadFile("/proc/sys/kernel/" + name)
		if err != nil {
			return 0, fmt.Errorf("read process limit: %w", err)
		}
		limit, err := strconv.ParseUint(strings.TrimSpace(string(content)), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read limit of processes %s: %w", name, err)
		}
		lowest = min(lowest, limit)
	}
	return lowest, nil
}
