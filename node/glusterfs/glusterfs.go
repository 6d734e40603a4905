// Package glusterfs implements the kubelet's plugin for GlusterFS volumes, which Kubernetes removed
// in 1.26. It mounts the volumes in user space with the mount.glusterfs program. The mount options
// are the same as in Kubernetes' former plugin.
//
// Source: OpenShift Container Platform 3.9 Architecture, persistent volumes.
package glusterfs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/util"
	"k8s.io/mount-utils"
	utilstrings "k8s.io/utils/strings"
)

// Name is the plugin's name.
const Name = "kubernetes.io/glusterfs"

const (
	// requestTimeout is the timeout for requesting the servers' addresses.
	requestTimeout = 10 * time.Second
	// unmountTimeout is the time after which an unmount is forced.
	unmountTimeout = time.Minute
)

// Plugin mounts GlusterFS volumes.
type Plugin struct{ host volume.VolumeHost }

// Init sets the plugin's host.
func (p *Plugin) Init(host volume.VolumeHost) error {
	p.host = host
	return nil
}

// GetPluginName returns Name.
func (*Plugin) GetPluginName() string { return Name }

// GetVolumeName returns the name of the servers' Endpoints followed by the volume's path.
func (*Plugin) GetVolumeName(spec *volume.Spec) (string, error) {
	source, err := sourceOf(spec)
	return source.endpoints + "/" + source.path, err
}

// CanSupport reports whether a volume is a GlusterFS volume.
func (*Plugin) CanSupport(spec *volume.Spec) bool {
	_, err := sourceOf(spec)
	return err == nil
}

// RequiresRemount returns false, because the content does not depend on the pod.
func (*Plugin) RequiresRemount(*volume.Spec) bool { return false }

// SupportsMountOption returns true.
func (*Plugin) SupportsMountOption() bool { return true }

// SupportsSELinuxContextMount returns false, as for all user-space file systems.
func (*Plugin) SupportsSELinuxContextMount(*volume.Spec) (bool, error) { return false, nil }

// GetAccessModes returns all access modes.
func (*Plugin) GetAccessModes() []corev1.PersistentVolumeAccessMode {
	return []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany}
}

// NewMounter returns a mounter that mounts a volume for a pod.
func (p *Plugin) NewMounter(spec *volume.Spec, pod *corev1.Pod) (volume.Mounter, error) {
	source, err := sourceOf(spec)
	if err != nil {
		return nil, err
	}
	if source.namespace == "" {
		source.namespace = pod.Namespace
	}
	return &mounter{p.mounted(spec.Name(), pod.UID), source, util.MountOptionFromSpec(spec)}, nil
}

// NewUnmounter returns an unmounter for a pod's volume.
func (p *Plugin) NewUnmounter(name string, pod types.UID) (volume.Unmounter, error) {
	return &unmounter{p.mounted(name, pod)}, nil
}

// ConstructVolumeSpec returns an incomplete spec for a volume that is already mounted when the
// kubelet starts. The spec is sufficient to unmount the volume.
func (*Plugin) ConstructVolumeSpec(name, _ string) (volume.ReconstructedVolume, error) {
	source := corev1.VolumeSource{Glusterfs: &corev1.GlusterfsVolumeSource{EndpointsName: name, Path: name}}
	return volume.ReconstructedVolume{Spec: volume.NewSpecFromVolume(&corev1.Volume{Name: name, VolumeSource: source})}, nil
}

func (p *Plugin) mounted(name string, pod types.UID) mounted {
	dir := p.host.GetPodVolumeDir(pod, utilstrings.EscapeQualifiedName(Name), name)
	return mounted{volume.NewMetricsStatFS(dir), p, name, pod, dir}
}

// source identifies a volume and its servers.
type source struct {
	// namespace is the namespace of the Endpoints. If it is "", the pod's namespace is used.
	namespace, endpoints string
	// path is the volume's name on the servers.
	path     string
	readOnly bool
}

func sourceOf(spec *volume.Spec) (source, error) {
	switch {
	case spec.Volume != nil && spec.Volume.Glusterfs != nil:
		s := spec.Volume.Glusterfs
		return source{"", s.EndpointsName, s.Path, s.ReadOnly}, nil
	case spec.PersistentVolume != nil && spec.PersistentVolume.Spec.Glusterfs != nil:
		s := spec.PersistentVolume.Spec.Glusterfs
		result := source{"", s.EndpointsName, s.Path, spec.ReadOnly}
		if s.EndpointsNamespace != nil {
			result.namespace = *s.EndpointsNamespace
		} else if claim := spec.PersistentVolume.Spec.ClaimRef; claim != nil {
			result.namespace = claim.Namespace
		}
		return result, nil
	}
	return source{}, errors.New("the volume is not a GlusterFS volume")
}

// mounted is a pod's volume.
type mounted struct {
	volume.MetricsProvider
	plugin *Plugin
	name   string
	pod    types.UID
	dir    string
}

// GetPath returns the volume's directory.
func (m mounted) GetPath() string { return m.dir }

type mounter struct {
	mounted
	source  source
	options []string
}

// GetAttributes returns the volume's attributes.
func (m *mounter) GetAttributes() volume.Attributes {
	return volume.Attributes{ReadOnly: m.source.readOnly}
}

// SetUp mounts the volume.
func (m *mounter) SetUp(args volume.MounterArgs) error { return m.SetUpAt(m.dir, args) }

// SetUpAt mounts the volume at dir, from the first server that responds.
func (m *mounter) SetUpAt(dir string, _ volume.MounterArgs) error {
	host := m.plugin.host.GetMounter()
	if isMounted, err := host.IsMountPoint(dir); err == nil && isMounted {
		return nil
	}
	servers, err := m.servers()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	log := filepath.Join(m.plugin.host.GetPluginDir(Name), m.name, string(m.pod)+"-glusterfs.log")
	if err := os.MkdirAll(filepath.Dir(log), 0o750); err != nil {
		return err
	}
	options := []string{"log-level=ERROR", "log-file=" + log, "backup-volfile-servers=" + strings.Join(servers, ":")}
	if m.source.readOnly {
		options = append(options, "ro")
	}
	err = host.Mount(servers[0]+":"+m.source.path, dir, "glusterfs", util.JoinMountOptions(m.options, options))
	if err != nil {
		content, _ := os.ReadFile(log)
		return errors.Join(fmt.Errorf("mount GlusterFS volume %q: %w\n%s", m.source.path, err, content), (&unmounter{m.mounted}).TearDownAt(dir))
	}
	return nil
}

// servers returns the servers' addresses.
func (m *mounter) servers() (addresses []string, err error) {
	ctx, stop := context.WithTimeout(context.Background(), requestTimeout)
	defer stop()
	endpoints, err := m.plugin.host.GetKubeClient().CoreV1().Endpoints(m.source.namespace).Get(ctx, m.source.endpoints, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("find GlusterFS servers: %w", err)
	}
	for _, subset := range endpoints.Subsets {
		for _, address := range subset.Addresses {
			if net.ParseIP(address.IP) != nil {
				addresses = append(addresses, address.IP)
			}
		}
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("find GlusterFS servers: endpoints %q of project %q have no addresses", m.source.endpoints, m.source.namespace)
	}
	return addresses, nil
}

type unmounter struct{ mounted }

// TearDown unmounts the volume.
func (u *unmounter) TearDown() error { return u.TearDownAt(u.dir) }

// TearDownAt unmounts the volume from dir, and removes dir.
func (u *unmounter) TearDownAt(dir string) error {
	host := u.plugin.host.GetMounter()
	if forced, ok := host.(mount.MounterForceUnmounter); ok {
		return mount.CleanupMountWithForce(dir, forced, true, unmountTimeout)
	}
	return mount.CleanupMountPoint(dir, host, true)
}
