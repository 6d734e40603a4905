package flexvolume

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Volume describes a FlexVolume, as specified by a PersistentVolume or by a pod with an inline
// volume.
type Volume struct {
	// Name is the name of the PersistentVolume, or of the volume in its pod.
	Name string
	// ID distinguishes volumes with the same name, such as inline volumes of different pods. One
	// operation runs at a time for each ID. If empty, Name is used.
	ID string
	// FSType is the requested file system, or empty.
	FSType string
	// ReadOnly is the volume's readOnly setting.
	ReadOnly bool
	// Options are the user's options. The driver gets them verbatim.
	Options map[string]string
}

// Pod identifies the pod that uses the volume. The driver gets it on mount.
type Pod struct{ Name, Namespace, UID, ServiceAccount string }

// MountRequest is the input of the mount operation.
type MountRequest struct {
	Volume
	Pod Pod
	// FSGroup is the group that owns the volume's files, or nil.
	FSGroup *int64
	// Secrets are the data of the referenced secret. The driver gets the values in base64.
	Secrets map[string][]byte
}

// maxArgument is the longest single argument that Linux passes to a program, in bytes
// (MAX_ARG_STRLEN without its final NUL).
const maxArgument = 32*4096 - 1

// json encodes the volume for all operations but mount.
func (v Volume) json() (string, error) { return encode(v, nil) }

// json encodes the volume for mount: with the pod, the secret and the group. The group has two
// keys: the one that Kubernetes sends and the one that its documentation specifies.
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

// encode returns the JSON object of a call. Keys are sorted, there are no spaces, and <, > and &
// are escaped, as encoding/json does for maps. Kubernetes sends the same, and shell drivers depend
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

// checkOptions rejects options with keys that Kubernetes reserves. The API server rejects them too,
// but not all options come from the API server.
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

// id returns the volume's unique ID within its driver.
func (v Volume) id() string {
	if v.ID != "" {
		return v.ID
	}
	return v.Name
}
