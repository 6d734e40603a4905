package flexvolume

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Volume is what a PersistentVolume, or a pod with an inline volume, says about one FlexVolume.
type Volume struct {
	// Name is the name of the PersistentVolume, or of the volume in its pod.
	Name string
	// ID tells volumes apart that share a name, as inline volumes of different pods do: one operation runs at a time for
	// one ID. Name where it is empty.
	ID string
	// FSType is the file system wanted, or empty.
	FSType string
	// ReadOnly is the volume's readOnly setting.
	ReadOnly bool
	// Options are the user's, given to the driver verbatim.
	Options map[string]string
}

// Pod is what a driver is told on mount about the pod that uses the volume.
type Pod struct{ Name, Namespace, UID, ServiceAccount string }

// Mounting is everything a driver is told on mount.
type Mounting struct {
	Volume
	Pod Pod
	// FSGroup is the group that owns the volume's files, or nil.
	FSGroup *int64
	// Secrets are the keys and values of the referenced secret; the driver gets the values in base64.
	Secrets map[string][]byte
}

// maxArgument is the longest single argument that Linux passes to a program, in bytes (MAX_ARG_STRLEN without its final NUL).
const maxArgument = 32*4096 - 1

// json is the volume as drivers get it for every operation but mount.
func (v Volume) json() (string, error) { return encode(v, nil) }

// json is the volume as drivers get it on mount: with the pod, the secret and the group, the latter under the name that Kubernetes gives
// it and under the one that its documentation promised.
func (m Mounting) json() (string, error) {
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

// encode writes the one JSON object of a call. Keys are sorted, there are no spaces, and <, > and & are escaped, as
// encoding/json does for maps and as Kubernetes therefore sends it: shell drivers depend on each of these.
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

// checkOptions refuses user options in the names that Kubernetes reserves for itself. The API server refuses them too, but
// not every way that an option can come goes through it.
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
	return fmt.Errorf("read options of volume %q: %q belong to names reserved for Kubernetes; remove them", v.Name, reserved)
}

// id tells the volume apart from others of its driver.
func (v Volume) id() string {
	if v.ID != "" {
		return v.ID
	}
	return v.Name
}
