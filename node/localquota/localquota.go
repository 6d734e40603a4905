// Package localquota limits the number of bytes that pods can store in emptyDir volumes. It uses
// group quotas in the node's file system.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, 2.5.1
// (volumeConfig.localQuota).
package localquota

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/volume"
)

// emptyDir is the name of upstream's plugin.
const emptyDir = "kubernetes.io/empty-dir"

// Limit wraps the kubelet's volume plugins so that all files of a group in emptyDir volumes
// together use at most the given number of bytes. The group is the pod's fsGroup. In-memory volumes
// have no quota.
func Limit(plugins []volume.VolumePlugin, bytes int64) []volume.VolumePlugin {
	limited := make([]volume.VolumePlugin, len(plugins))
	for i, item := range plugins {
		if limited[i] = item; item.GetPluginName() == emptyDir {
			limited[i] = plugin{item, bytes}
		}
	}
	return limited
}

// plugin is upstream's emptyDir plugin with a quota.
type plugin struct {
	volume.VolumePlugin
	bytes int64
}

// NewMounter returns upstream's mounter with a quota.
func (p plugin) NewMounter(spec *volume.Spec, pod *corev1.Pod) (volume.Mounter, error) {
	upstream, err := p.VolumePlugin.NewMounter(spec, pod)
	if err != nil {
		return nil, err
	}
	return mounter{upstream, p.bytes}, nil
}

type mounter struct {
	volume.Mounter
	bytes int64
}

// SetUp creates the volume.
func (m mounter) SetUp(args volume.MounterArgs) error { return m.SetUpAt(m.GetPath(), args) }

// SetUpAt creates the volume at dir and sets the quota.
func (m mounter) SetUpAt(dir string, args volume.MounterArgs) error {
	if err := m.Mounter.SetUpAt(dir, args); err != nil || args.FsGroup == nil {
		return err
	}
	return set(dir, *args.FsGroup, m.bytes)
}

// quotactl(2) commands for all file systems that implement the XFS interface, including ext4.
const (
	groupQuota  = 1
	getState    = 'X'<<8 + 5
	setLimits   = 'X'<<8 + 4
	accounted   = 1 << 2 // the file system tracks the usage of groups
	enforced    = 1 << 3 // the file system enforces the limits of groups
	blockLimits = 1<<2 | 1<<3
	ofGroup     = 1 << 2
	blockBytes  = 512
)

// state is the beginning of the kernel's struct fs_quota_stat.
type state struct {
	_     int8
	flags uint16
	_     [76]byte
}

// limits is the kernel's struct fs_disk_quota.
type limits struct {
	version, flags int8
	fields         uint16
	id             uint32
	hard, soft     uint64 // in blocks
	_              [88]byte
}

// Check returns an error if a directory's file system does not enforce group quotas.
func Check(dir string) error {
	var s state
	err := call(dir, getState, 0, unsafe.Pointer(&s))
	if err == nil && s.flags&accounted != 0 && s.flags&enforced != 0 {
		return nil
	}
	return fmt.Errorf("volumeConfig.localQuota.perFSGroup: the file system of %q has no quotas of groups; "+
		"mount an XFS file system with the option gquota there, or remove the setting", dir)
}

// set limits the size of a group's files in dir's file system. It is a no-op for an in-memory file
// system.
func set(dir string, group, bytes int64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("find file system of %q: %w", dir, err)
	}
	if fs.Type == unix.TMPFS_MAGIC || fs.Type == unix.HUGETLBFS_MAGIC {
		return nil
	}
	blocks := uint64((bytes + blockBytes - 1) / blockBytes)
	l := limits{version: 1, flags: ofGroup, fields: blockLimits, id: uint32(group), hard: blocks, soft: blocks}
	if err := call(dir, setLimits, group, unsafe.Pointer(&l)); err != nil {
		return fmt.Errorf("limit files of group %d in %q: %w", group, dir, err)
	}
	return nil
}

// call calls quotactl_fd(2) for dir's file system.
func call(dir string, command uintptr, id int64, argument unsafe.Pointer) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, file.Fd(), command<<8|groupQuota, uintptr(id), uintptr(argument), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
