package driver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Options are what a volume says about itself and, on Mount, about the pod that uses it.
type Options struct {
	// Volume is the name of the PersistentVolume, or of the volume in its pod. Users choose it.
	Volume string
	// FSType is the file system wanted, or "".
	FSType   string
	ReadOnly bool
	// Values are the options of the volume, as the user wrote them.
	Values map[string]string

	// The rest is known on Mount only.

	PodName, PodNamespace, PodUID, ServiceAccount string
	// FSGroup is the group that is to own the files, or nil.
	FSGroup *int64
	// Secrets are the keys and decoded values of the volume's secret.
	Secrets map[string]Secret
}

// ParseOptions reads the JSON object of a call.
func ParseOptions(text string) (Options, error) {
	var all map[string]string
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		// The text may hold secrets, and so may what the decoder quotes.
		return Options{}, fmt.Errorf("read options: they are no JSON object of strings")
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
	for key, value := range all {
		own, isOwn := strings.CutPrefix(key, "kubernetes.io/")
		secret, isSecret := strings.CutPrefix(own, "secret/")
		switch {
		case !isOwn:
			o.Values[key] = value
		case texts[key] != nil:
			*texts[key] = value
		case isSecret:
			decoded, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return Options{}, fmt.Errorf("read secret %q: it is not in base64", secret)
			}
			o.Secrets[secret] = decoded
		}
	}
	o.ReadOnly = all["kubernetes.io/readwrite"] == "ro"
	// The first is what Kubernetes sends, the second what its documentation promised.
	for _, key := range []string{"kubernetes.io/mounterArgs.FsGroup", "kubernetes.io/fsGroup"} {
		if all[key] == "" {
			continue
		}
		group, err := strconv.ParseInt(all[key], 10, 64)
		if err != nil {
			return Options{}, fmt.Errorf("read %s %q: it is not a number", key, all[key])
		}
		o.FSGroup = &group
	}
	return o, nil
}

// Value is the user's option, or the default where it is missing or empty.
func (o Options) Value(key, otherwise string) string {
	if value := o.Values[key]; value != "" {
		return value
	}
	return otherwise
}

// Required is the user's option, or an error that names it where it is missing or empty.
func (o Options) Required(key string) (string, error) {
	if value := o.Values[key]; value != "" {
		return value, nil
	}
	return "", fmt.Errorf("option %q is missing", key)
}

// Size is the user's option as a number of bytes, written as Kubernetes does (1073741824, 1Gi, 500M), or the default where it is missing or
// empty.
func (o Options) Size(key string, otherwise int64) (int64, error) {
	text := o.Values[key]
	if text == "" {
		return otherwise, nil
	}
	number := strings.TrimRight(text, "KMGTPEki")
	unit := units(text[len(number):])
	value, err := strconv.ParseInt(number, 10, 64)
	if err != nil || value < 0 || unit == 0 || value > math.MaxInt64/unit {
		return 0, fmt.Errorf("option %q is %q: it must be a number of bytes, with or without one of k M G T P E Ki Mi Gi Ti Pi Ei", key, text)
	}
	return value * unit, nil
}

// units is the factor of a unit, or 0 for none that exists.
func units(unit string) int64 {
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
