package flexvolume

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Volume describes a FlexVolume as specified by a PersistentVolume, or by a pod with an inline
// volume.
type Volume struct {
	// Name is the name of the PersistentVolume, or of the volume in its pod.
	Name string
	// ID distinguishes volumes that have the same name, such as inline volumes of different pods.
	// Only one operation runs at a time per ID. If ID is empty, Name is used.
	ID string
	// FSType is the requested file system type, or "".
	FSType string
	// ReadOnly is the volume's readOnly setting.
	ReadOnly bool
	// Options contains the user's options. They are passed to the driver verbatim.
	Options map[string]string
}

// Pod identifies the pod that uses the volume. It is passed to the driver on mount.
type Pod struct{ Name, Namespace, UID, ServiceAccount string }

// MountRequest is the input of the mount operation.
type MountRequest struct {
	Volume
	Pod Pod
	// FSGroup is the group that owns the volume's files, or nil.
	FSGroup *int64
	// Secrets contains the data of the referenced secret. The values are passed to the driver in
	// base64.
	Secrets map[string][]byte
}

// maxArgument is the maximum length of a single argument that Linux passes to a program, in bytes
// (MAX_ARG_STRLEN without its terminating NUL).
const maxArgument = 32*4096 - 1

// json encodes the volume for all operations except mount.
func (v Volume) json() (string, error) { return encode(v, nil) }

// json encodes the volume for mount, with the pod, the secret and the group. The group has two
// keys: the key that Kubernetes sends, and the key in Kubernetes' documentation.
func (m MountRequest) json() (string, error) {
	extra := map[string]string{
		"kubernetes.io/pod.name":            m.Pod.Name,
		"kubernetes.io/pod.namespace":       m.Pod.Namespace,
		"kubernetes.io/pod.uid":             m.Pod.UID,
		"kubernetes.io/serviceAccount.name": m.Pod.ServiceAccount,
	}
	for key, value := range m.Secrets {
		extra["kubernetes.io/secret/"+key] = base64.StdEncoding.EncodeToString(value)
	}
	if m.FSGroup != nil {
		group := strconv.FormatInt(*m.FSGroup, 10)
		extra["kubernetes.io/mounterArgs.FsGroup"] = group
		extra["kubernetes.io/fsGroup"] = group
	}
	return encode(m.Volume, extra)
}

// encode returns a call's JSON object. Keys are sorted, there are no spaces, and <, > and & are
// escaped, as encoding/json does for maps. Kubernetes sends the same JSON, and shell drivers depend
// on each of these details.
func encode(v Volume, extra map[string]string) (string, error) {
	if err := v.checkOptions(); err != nil {
		return "", err
	}
	input := map[string]string{
		"kubernetes.io/fsType":         v.FSType,
		"kubernetes.io/readwrite":      "rw",
		"kubernetes.io/pvOrVolumeName": v.Name,
	}
	if v.ReadOnly {
		input["kubernetes.io/readwrite"] = "ro"
	}
	for key, value := range extra {
		input[key] = value
	}
	for key, value := range v.Options {
		input[key] = value
	}
	encoded, err := json.Marshal(input)
	if err != nil {
		return "", fmt.Errorf("encode options of volume %q: %w", v.Name, err)
	}
	if len(encoded) > maxArgument {
		return "", fmt.Errorf("pass options of volume %q: %d bytes are over the kernel's limit of %d for one argument; "+
			"make the options or the secret smaller", v.Name, len(encoded), maxArgument)
	}
	return string(encoded), nil
}

// checkOptions returns an error for options whose keys are reserved by Kubernetes. The API server
// performs the same check, but not all options come from the API server.
func (v Volume) checkOptions() error {
	var reserved []string
	for key := range v.Options {
		namespace, _, _ := strings.Cut(key, "/")
		namespace = "." + strings.ToLower(namespace)
		if strings.HasSuffix(namespace, ".kubernetes.io") || strings.HasSuffix(namespace, ".k8s.io") {
			reserved = append(reserved, key)
		}
	}
	if len(reserved) == 0 {
		return nil
	}
	slices.Sort(reserved)
	return fmt.Errorf("read options of volume %q: %q are keys reserved for Kubernetes; remove them", v.Name, reserved)
}

// id returns the volume's ID, which is unique within its driver.
func (v Volume) id() string {
	if v.ID != "" {
		return v.ID
	}
	return v.Name
}
