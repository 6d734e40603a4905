// Package samples contains the images that Slipway can create from Debian packages, and the initial
// image streams and templates in the openshift project. Each image has a folder below images. The
// folder contains image.yaml, the image's own files in root, and apb.yml if the image is an Ansible
// playbook bundle.
package samples

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/packaging/monitoring"
)

//go:embed images templates base shared
var files embed.FS

// Image is an image that Build creates: the content of an image.yaml. Its name is the folder's
// name.
type Image struct {
	Name string `json:"-"`
	// DisplayName, Description, Icon and Tags describe the image in the web console's catalog. Icon is
	// an icon class of OpenShift's console, without the "icon-" prefix.
	DisplayName, Description, Icon string
	Tags                           []string
	// Version is the image stream tag that exists in addition to latest.
	Version string
	// Streams lists the names of the image's image streams. The default is the image's name.
	Streams []string
	// Supports lists the languages for which the catalog offers this builder, in addition to its
	// stream names.
	Supports []string
	// Example is the folder of the example application in Slipway's repository, if the image is a
	// builder.
	Example string
	// Base is the name of the image that this image adds files to, or "". An image with a base has
	// no packages and inherits its base's settings.
	Base string
	// Packages lists the names of Debian packages. Omit lists patterns for the package paths to leave
	// out of the image. Keep lists patterns for exceptions to Omit.
	Packages, Omit, Keep []string
	// Programs lists the names of Slipway programs that are installed in the image's /usr/bin.
	Programs []string
	// Include lists folders in shared whose files are added to the image, in addition to the files
	// in its root.
	Include []string
	// UID is the image's user ID, and User is the user's name. Clusters run the image with a different
	// user ID, in the root group.
	UID  int
	User string
	// Home is the user's home directory. The root group can write to it and to the directories in
	// Writable.
	Home     string
	Writable []string
	// Volume is the data directory, or "".
	Volume string
	// Port and Service are the number and the name of the image's port.
	Port    int
	Service string
	// Env contains the image's environment variables. Command is a program that runs without
	// arguments. Entrypoint is a program that receives the container's arguments.
	Env                 map[string]string
	Command, Entrypoint string
	// Compile contains shell commands that, like Setup, run when the image is created. The IMAGE_ROOT
	// environment variable contains the path of a directory with the image's own files.
	Compile string
	// Setup contains shell commands that run in the image's root directory after the packages have
	// been unpacked.
	Setup string

	base *Image
}

// Reference returns the name of the image on a host.
func (i *Image) Reference() string { return "localhost/sample-" + i.Name + ":" + i.Version }

// Builder reports whether the image builds applications from source.
func (i *Image) Builder() bool { return slices.Contains(i.Tags, "builder") }

// Directory returns the working directory of the image.
func (i *Image) Directory() string {
	if i.Builder() {
		return i.Home + "/src"
	}
	return i.Home
}

// Images returns all images, sorted by name.
func Images() (images []*Image, err error) {
	folders, err := files.ReadDir("images")
	if err != nil {
		return nil, fmt.Errorf("list images: %w", err)
	}
	for _, folder := range folders {
		image := &Image{Name: folder.Name(), Streams: []string{folder.Name()}}
		file := path.Join("images", folder.Name(), "image.yaml")
		text, err := files.ReadFile(file)
		if err == nil {
			err = yaml.UnmarshalStrict(text, image)
		}
		if err != nil {
			return nil, fmt.Errorf("read image %q: %w", folder.Name(), err)
		}
		images = append(images, image)
	}
	for _, image := range images {
		if err := image.complete(images); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// complete sets the base field of an image that has a base image. For any other image, it sets the
// defaults of UID, User and Home.
func (i *Image) complete(images []*Image) error {
	if i.Base != "" {
		at := slices.IndexFunc(images, func(image *Image) bool { return image.Name == i.Base })
		if at < 0 {
			return fmt.Errorf("read image %q: its base image %q does not exist", i.Name, i.Base)
		}
		i.base = images[at]
		return nil
	}
	i.UID, i.User, i.Home = cmp.Or(i.UID, 1001), cmp.Or(i.User, "default"), cmp.Or(i.Home, "/opt/app-root")
	return nil
}

// Select returns the images with the given names, in the given order, or all images if no names are
// given. Before an image that has a base, it returns the base. Each image can also be selected by
// the name of its second stream.
func Select(names []string) ([]*Image, error) {
	all, err := Images()
	if err != nil {
		return nil, err
	}
	var selected []*Image
	var allNames []string
	for _, image := range all {
		allNames = append(allNames, image.Name)
	}
	if len(names) == 0 {
		names = allNames
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(image *Image) bool { return image.Name == name || slices.Contains(image.Streams, name) })
		if i < 0 {
			return nil, fmt.Errorf("find image %q: it must be one of %s", name, strings.Join(allNames, ", "))
		}
		for _, image := range []*Image{all[i].base, all[i]} {
			if image != nil && !slices.Contains(selected, image) {
				selected = append(selected, image)
			}
		}
	}
	return selected, nil
}

// Manifest is a YAML file with objects.
type Manifest struct{ Name, Text string }

// Manifests returns the initial image streams and templates of the openshift project.
func Manifests() (manifests []Manifest, err error) {
	images, err := Images()
	if err != nil {
		return nil, err
	}
	functions := template.FuncMap{
		"upper": strings.ToUpper, "join": strings.Join, "exposed": exposed, "indent": indent,
		"prometheusConfiguration": prometheusConfiguration, "prometheusRules": func() string { return monitoring.Rules },
		"prometheusRights": func() string { return monitoring.Rights("${NAMESPACE}") },
	}
	texts, err := template.New("").Delims("[[", "]]").Funcs(functions).ParseFS(files, "templates/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("load samples: %w", err)
	}
	add := func(file, name string, values any) error {
		var text bytes.Buffer
		if err := texts.ExecuteTemplate(&text, file, values); err != nil {
			return fmt.Errorf("fill in sample %q: %w", name, err)
		}
		manifests = append(manifests, Manifest{name, text.String()})
		return nil
	}
	for _, stream := range streams(images) {
		if err := add("stream.yaml", stream.Name, stream); err != nil {
			return nil, err
		}
	}
	entries, err := templates(images)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if err := add(entry.file, entry.name, entry.values); err != nil {
			return nil, err
		}
	}
	return manifests, nil
}

// rootFiles calls add for each of the image's own files. The file's name is relative to the root
// directory.
func (i *Image) rootFiles(add func(name string, content []byte, mode fs.FileMode) error) error {
	roots := []string{path.Join("images", i.Name, "root")}
	for _, folder := range i.Include {
		roots = append(roots, path.Join("shared", folder))
	}
	for _, root := range roots {
		if err := filesBelow(root, add); err != nil {
			return err
		}
	}
	return nil
}

func filesBelow(root string, add func(name string, content []byte, mode fs.FileMode) error) error {
	return fs.WalkDir(files, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(content, []byte("#!")) { // embedded files have no file mode
			mode = 0o755
		}
		return add(strings.TrimPrefix(name, root+"/"), content, mode)
	})
}

// prometheusConfiguration returns the configuration for Prometheus in a pod.
func prometheusConfiguration() string {
	const account = "/var/run/secrets/kubernetes.io/serviceaccount/"
	return monitoring.Configuration(monitoring.Files{
		Server: "https://kubernetes.default.svc", Token: account + "token", Authority: account + "ca.crt", Rules: "/etc/prometheus/*.rules.yml",
	})
}

// indent indents each line of text by the given number of spaces.
func indent(spaces int, text string) string {
	prefix := strings.Repeat(" ", spaces)
	return prefix + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+prefix)
}
