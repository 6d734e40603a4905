package set

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/polymorphichelpers"
	"k8s.io/utils/ptr"
)

// volume holds the state of `oc set volume`.
type volume struct {
	add, remove, listed, overwrite, confirm bool
	name, containers                        string // containers is a pattern for container names

	kind, path, secret, configMap, claim string
	sourceJSON, defaultMode              string
	newClaim                             newClaim
	mountPath, subPath                   string
	readOnly                             bool
}

func newVolume(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	t, v := newTargets(factory, streams, "volume updated"), &volume{}
	command := &cobra.Command{
		Use:     "volume TYPE/NAME [--add | --remove] [--name=NAME] [--type=TYPE] [--mount-path=PATH]",
		Aliases: []string{"volumes"},
		Short:   "Update volumes on a pod template",
		Long: `List, add or remove volumes of pods and of controllers of pods, and their mounts.

Without --add and --remove, the command lists the volumes. --overwrite changes the source of an existing volume if a
type is set, and its mount if a path is set.`,
		Example: `  oc set volume dc/web
  oc set volume dc/web --add --name=data --type=persistentVolumeClaim --claim-name=data --mount-path=/data --overwrite
  oc set volume dc/web --add --type=secret --secret-name=keys --mount-path=/keys -c web
  oc set volume dc/web --add --name=data --type=pvc --claim-size=1Gi --mount-path=/data
  oc set volume dc/web --remove --name=data`,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(v.validate())
			infos, err := t.find(args)
			util.CheckErr(err)
			if !v.add && !v.remove {
				util.CheckErr(v.list(streams.Out, infos))
				return
			}
			util.CheckErr(v.makeClaims(t, command, infos))
			util.CheckErr(t.change(command, infos, v.change))
		},
	}
	t.addFlags(command)
	flags := command.Flags()
	flags.BoolVar(&v.add, "add", false, "Add a volume. With only a name and a path, add a mount.")
	flags.BoolVar(&v.remove, "remove", false, "Remove a volume.")
	flags.BoolVar(&v.listed, "list", false, "List the volumes. This is the default.")
	flags.BoolVar(&v.overwrite, "overwrite", false, "Change an existing volume with this name.")
	flags.BoolVar(&v.confirm, "confirm", false, "Remove all volumes if --name is not set.")
	flags.StringVar(&v.name, "name", "", "Name of the volume. By default, a new volume gets a generated name.")
	flags.StringVarP(&v.containers, "containers", "c", "*", "Names of the containers. Can contain wildcards.")
	flags.StringVarP(&v.kind, "type", "t", "", "Type of the volume: emptyDir, hostPath, secret, configMap or persistentVolumeClaim (pvc). The default is emptyDir.")
	flags.StringVar(&v.path, "path", "", "Directory of the host, for hostPath.")
	flags.StringVar(&v.secret, "secret-name", "", "Name of the secret, for secret.")
	flags.StringVar(&v.configMap, "configmap-name", "", "Name of the config map, for configMap.")
	flags.StringVar(&v.claim, "claim-name", "", "Name of the claim, for persistentVolumeClaim.")
	flags.StringVar(&v.sourceJSON, "source", "", "Volume source as JSON, for types that --type does not support.")
	flags.StringVar(&v.defaultMode, "default-mode", "", "Mode of the files of a secret or configMap, in octal, such as 0644.")
	v.newClaim.addFlags(flags)
	flags.StringVarP(&v.mountPath, "mount-path", "m", "", "Path of the mount in the containers. By default, the volume is not mounted.")
	flags.StringVar(&v.subPath, "sub-path", "", "Path in the volume to mount.")
	flags.BoolVar(&v.readOnly, "read-only", false, "Mount the volume read-only.")
	return command
}

func (v *volume) validate() error {
	if v.kind == "" && v.sourceJSON == "" {
		switch { // as in OpenShift 3, the flag for the source's name implies the type
		case v.secret != "":
			v.kind = "secret"
		case v.configMap != "":
			v.kind = "configMap"
		case v.path != "":
			v.kind = "hostPath"
		case v.claim != "":
			v.kind = "persistentVolumeClaim"
		}
	}
	switch {
	case v.add && v.remove, v.listed && (v.add || v.remove):
		return errors.New("use only one of --add, --remove and --list")
	case v.remove && v.name == "" && !v.confirm:
		return errors.New("must provide --confirm for removing more than one volume, or --name for one")
	case v.mountPath != "" && !path.IsAbs(v.mountPath):
		return fmt.Errorf("parse --mount-path %q: must begin with a slash", v.mountPath)
	case v.mountPath == "" && (v.subPath != "" || v.readOnly):
		return errors.New("--sub-path and --read-only need --mount-path")
	}
	if _, err := path.Match(v.containers, ""); err != nil {
		return fmt.Errorf("parse --containers %q: %w", v.containers, err)
	}
	if err := v.prepareClaim(); err != nil {
		return err
	}
	if v.add && (v.kind != "" || v.sourceJSON != "" || v.defaultMode != "") {
		_, err := v.source()
		return err
	}
	return nil
}

// source returns the volume source that the flags describe.
func (v *volume) source() (source corev1.VolumeSource, err error) {
	if v.sourceJSON != "" {
		return v.decodeSource()
	}
	mode, err := v.mode()
	if err != nil {
		return source, err
	}
	need := func(flag, value string) error {
		if value == "" {
			return fmt.Errorf("a volume of type %s needs --%s", v.kind, flag)
		}
		return nil
	}
	switch v.kind {
	case "", "emptyDir", "emptydir":
		source.EmptyDir = &corev1.EmptyDirVolumeSource{}
	case "hostPath", "hostpath":
		source.HostPath, err = &corev1.HostPathVolumeSource{Path: v.path}, need("path", v.path)
	case "secret":
		source.Secret, err = &corev1.SecretVolumeSource{SecretName: v.secret, DefaultMode: mode}, need("secret-name", v.secret)
	case "configMap", "configmap":
		source.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: v.configMap}, DefaultMode: mode}
		err = need("configmap-name", v.configMap)
	case "persistentVolumeClaim", "persistentvolumeclaim", "pvc":
		source.PersistentVolumeClaim, err = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.claim}, need("claim-name", v.claim)
	default:
		err = fmt.Errorf("parse --type %q: must be emptyDir, hostPath, secret, configMap or persistentVolumeClaim", v.kind)
	}
	return source, err
}

// decodeSource parses the volume source in --source.
func (v *volume) decodeSource() (source corev1.VolumeSource, err error) {
	if v.kind != "" || v.defaultMode != "" {
		return source, errors.New("--source cannot be used with --type or --default-mode")
	}
	decoder := json.NewDecoder(strings.NewReader(v.sourceJSON))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&source); err != nil {
		return source, fmt.Errorf(`parse --source: %w; it must be JSON such as {"nfs": {"server": "files.example.com", "path": "/"}}`, err)
	}
	if source == (corev1.VolumeSource{}) {
		return source, errors.New(`--source is empty; it must be JSON such as {"nfs": {"server": "files.example.com", "path": "/"}}`)
	}
	return source, nil
}

// mode parses --default-mode. It returns nil if the flag is not set.
func (v *volume) mode() (*int32, error) {
	if v.defaultMode == "" {
		return nil, nil
	}
	if !slices.Contains([]string{"secret", "configMap", "configmap"}, v.kind) {
		return nil, errors.New("--default-mode needs --type secret or configMap")
	}
	mode, err := strconv.ParseInt(v.defaultMode, 8, 32)
	if err != nil || mode < 0 || mode > 0o777 {
		return nil, fmt.Errorf("parse --default-mode %q: must be an octal number from 0 to 0777", v.defaultMode)
	}
	return ptr.To(int32(mode)), nil
}

// change adds or removes volumes and mounts in an object's pod spec.
func (v *volume) change(object runtime.Object) error {
	has, err := polymorphichelpers.UpdatePodSpecForObjectFn(object, func(spec *corev1.PodSpec) error {
		if v.remove {
			return v.removeFrom(spec)
		}
		return v.addTo(spec)
	})
	if err == nil && !has {
		err = errors.New("it has no volumes")
	}
	return err
}

// chosen returns the containers and init containers that --containers selects.
func (v *volume) chosen(spec *corev1.PodSpec) (chosen []*corev1.Container) {
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			// Ignore the error, because validate has already checked the pattern.
			if matches, _ := path.Match(v.containers, containers[i].Name); matches {
				chosen = append(chosen, &containers[i])
			}
		}
	}
	return chosen
}

// hasSource reports whether flags set a volume source.
func (v *volume) hasSource() bool { return v.kind != "" || v.sourceJSON != "" }

func (v *volume) addTo(spec *corev1.PodSpec) error {
	source, err := v.source()
	if err != nil {
		return err
	}
	name := v.name
	if name == "" && v.overwrite {
		name = v.mounted(spec)
	}
	if name == "" {
		name = "volume-" + rand.String(5)
	}
	switch at := slices.IndexFunc(spec.Volumes, func(of corev1.Volume) bool { return of.Name == name }); {
	case at < 0:
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	case v.hasSource() && !v.overwrite:
		return fmt.Errorf("volume %q already exists, use --overwrite to replace it", name)
	case v.hasSource():
		spec.Volumes[at].VolumeSource = source
	}
	if v.mountPath == "" {
		return nil
	}
	containers := v.chosen(spec)
	if len(containers) == 0 {
		return &unchanged{fmt.Sprintf("does not have any containers that match %q", v.containers)}
	}
	for _, container := range containers {
		mounts := container.VolumeMounts
		if v.overwrite {
			mounts = slices.DeleteFunc(mounts, func(m corev1.VolumeMount) bool { return m.Name == name })
		}
		if slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool { return path.Clean(m.MountPath) == path.Clean(v.mountPath) }) {
			return fmt.Errorf("volume mount '%s' already exists for container %q", v.mountPath, container.Name)
		}
		container.VolumeMounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: path.Clean(v.mountPath), SubPath: v.subPath, ReadOnly: v.readOnly})
	}
	return nil
}

// mounted returns the name of the volume that a chosen container mounts at --mount-path. If there
// is no such volume, it returns "".
func (v *volume) mounted(spec *corev1.PodSpec) string {
	for _, container := range v.chosen(spec) {
		for _, mount := range container.VolumeMounts {
			if v.mountPath != "" && path.Clean(mount.MountPath) == path.Clean(v.mountPath) {
				return mount.Name
			}
		}
	}
	return ""
}

// removeFrom removes mounts from the chosen containers, then removes volumes that are no longer
// mounted.
func (v *volume) removeFrom(spec *corev1.PodSpec) error {
	meant := func(name string) bool { return v.name == "" || v.name == name }
	if !slices.ContainsFunc(spec.Volumes, func(of corev1.Volume) bool { return meant(of.Name) }) {
		return fmt.Errorf("it has no volume %q", v.name)
	}
	for _, container := range v.chosen(spec) {
		container.VolumeMounts = slices.DeleteFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return meant(m.Name) })
	}
	inUse := map[string]bool{}
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, mount := range container.VolumeMounts {
			inUse[mount.Name] = true
		}
	}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(of corev1.Volume) bool { return meant(of.Name) && !inUse[of.Name] })
	return nil
}

// list prints the volumes of objects, and the paths at which the chosen containers mount them.
func (v *volume) list(out io.Writer, infos []*resource.Info) error {
	listed := v.name == ""
	for _, info := range infos {
		fmt.Fprintln(out, strings.TrimSpace(info.ObjectName())) // the name can end with a line break
		_, err := polymorphichelpers.UpdatePodSpecForObjectFn(info.Object, func(spec *corev1.PodSpec) error {
			for _, of := range spec.Volumes {
				if v.name != "" && v.name != of.Name {
					continue
				}
				listed = true
				fmt.Fprintf(out, "  %s as %s\n", describe(of.VolumeSource), of.Name)
				for _, container := range v.chosen(spec) {
					for _, mount := range container.VolumeMounts {
						if mount.Name == of.Name {
							fmt.Fprintf(out, "    mounted at %s\n", mount.MountPath)
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if !listed {
		return fmt.Errorf("volume %q not found", v.name)
	}
	return nil
}

func describe(source corev1.VolumeSource) string {
	switch {
	case source.PersistentVolumeClaim != nil:
		return "pvc/" + source.PersistentVolumeClaim.ClaimName
	case source.EmptyDir != nil:
		return "empty directory"
	case source.HostPath != nil:
		return "host path " + source.HostPath.Path
	case source.Secret != nil:
		return "secret/" + source.Secret.SecretName
	case source.ConfigMap != nil:
		return "configMap/" + source.ConfigMap.Name
	}
	return "other volume"
}
