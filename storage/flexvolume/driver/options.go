package driver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Options describes a volume and, on Mount, the pod that uses the volume.
type Options struct {
	// Volume is the name of the PersistentVolume, or of the volume in its pod. It is chosen by a
	// user.
	Volume string
	// FSType is the requested file system type, or "".
	FSType   string
	ReadOnly bool
	// Values contains the volume's options as specified by the user.
	Values map[string]string

	// The following fields are set only on Mount.

	PodName, PodNamespace, PodUID, ServiceAccount string
	// FSGroup is the group that must own the files, or nil.
	FSGroup *int64
	// Secrets contains the decoded data of the volume's secret.
	Secrets map[string]Secret
}

// ParseOptions parses the JSON options argument of a FlexVolume call.
func ParseOptions(text string) (Options, error) {
	var fields map[string]string
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		// The text might contain secrets, so the decoder's error is not included.
		return Options{}, fmt.Errorf("parse options: they are not a JSON object of strings")
	}
	o := Options{Values: map[string]string{}, Secrets: map[string]Secret{}}
	texts := map[string]*string{
		"kubernetes.io/pvOrVolumeName":      &o.Volume,
		"kubernetes.io/fsType":              &o.FSType,
		"kubernetes.io/pod.name":            &o.PodName,
		"kubernetes.io/pod.namespace":       &o.PodNamespace,
		"kubernetes.io/pod.uid":             &o.PodUID,
		"kubernetes.io/serviceAccount.name": &o.ServiceAccount,
	}
	for key, value := range fields {
		name, reserved := strings.CutPrefix(key, "kubernetes.io/")
		secret, isSecret := strings.CutPrefix(name, "secret/")
		switch {
		case !reserved:
			o.Values[key] = value
		case texts[key] != nil:
			*texts[key] = value
		case isSecret:
			decoded, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return Options{}, fmt.Errorf("read secret %q: it is not base64", secret)
			}
			o.Secrets[secret] = decoded
		}
	}
	o.ReadOnly = fields["kubernetes.io/readwrite"] == "ro"
	// Kubernetes sends the first key, but its documentation specifies the second key.
	for _, key := range []string{"kubernetes.io/mounterArgs.FsGroup", "kubernetes.io/fsGroup"} {
		if fields[key] == "" {
			continue
		}
		group, err := strconv.ParseInt(fields[key], 10, 64)
		if err != nil {
			return Options{}, fmt.Errorf("parse %s %q: it is not a number", key, fields[key])
		}
		o.FSGroup = &group
	}
	return o, nil
}

// Value returns the value of a user option, or the default if the option is missing or empty.
func (o Options) Value(key, defaultValue string) string {
	if value := o.Values[key]; value != "" {
		return value
	}
	return defaultValue
}

// Required returns the value of a user option, or an error if the option is missing or empty.
func (o Options) Required(key string) (string, error) {
	if value := o.Values[key]; value != "" {
		return value, nil
	}
	return "", fmt.Errorf("option %q is missing", key)
}

// Size returns the value of a user option in bytes, or the default if the option is missing or
// empty. The option uses Kubernetes' notation (1073741824, 1Gi, 500M).
func (o Options) Size(key string, defaultSize int64) (int64, error) {
	text := o.Values[key]
	if text == "" {
		return defaultSize, nil
	}
	number := strings.TrimRight(text, "KMGTPEki")
	unit := unitFactor(text[len(number):])
	value, err := strconv.ParseInt(number, 10, 64)
	if err != nil || value < 0 || unit == 0 || value > math.MaxInt64/unit {
		return 0, fmt.Errorf("option %q is %q: it must be a number of bytes, with or without one of k M G T P E Ki Mi Gi Ti Pi Ei", key, text)
	}
	return value * unit, nil
}

// unitFactor returns a unit's factor, or 0 if the unit does not exist.
func unitFactor(unit string) int64 {
	switch unit {
	case "":
		return 1
	case "k":
		return 1e3
	case "Ki":
		return 1 << 10
	}
	power := strings.Index("?KMGTPE", unit[:1])
	switch {
	case power < 2 || len(unit) > 2:
		return 0
	case len(unit) == 1:
		return int64(math.Pow10(3 * power))
	case unit[1] == 'i':
		return 1 << (10 * power)
	}
	return 0
}
