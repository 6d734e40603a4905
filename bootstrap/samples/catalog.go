package samples

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// stream is one of an image's image streams.
type stream struct {
	*Image
	// Name is the name of the stream.
	Name string
}

// Languages returns the languages that the stream can build. If version is set, the list begins
// with an additional entry that includes the version.
func (s stream) Languages(version string) []string {
	languages := append([]string{s.Name}, s.Supports...)
	if version == "" {
		return languages
	}
	return append([]string{s.Name + ":" + version}, languages...)
}

// streams returns the image streams of all images.
func streams(images []*Image) (all []stream) {
	for _, image := range images {
		for _, name := range image.Streams {
			all = append(all, stream{image, name})
		}
	}
	return all
}

// entry is a template in the catalog.
type entry struct {
	// file is the name of the template's source in the templates folder. name is the template's
	// name.
	file, name string
	values     any
}

// database describes a template that starts a database, or the database part of an application
// template.
type database struct {
	stream
	// Persistent means that the data is stored on a volume.
	Persistent bool
	// Prefix is the prefix of parameter and environment variable names. Label is the database's
	// label.
	Prefix string
	// Scheme is the URL scheme of the service.
	Scheme string
	// Keys lists the keys of the database's secret.
	Keys []key
}

// key describes a key of a database's secret.
type key struct {
	// Name is the key in the secret. Parameter is the name of the parameter in database templates,
	// without the prefix. Variable is the image's environment variable.
	Name, Parameter, Variable string
	// DisplayName and Description describe the template parameter.
	DisplayName, Description string
	// Value is the parameter's default value. From is the pattern, such as [a-z]{8}, from which the
	// template generates the default value.
	Value, From string
}

const (
	userPattern     = "user[A-Z0-9]{3}"
	passwordPattern = "[a-zA-Z0-9]{16}"
)

// keysOf maps a parameter prefix to the database's secret keys.
var keysOf = map[string][]key{
	"POSTGRESQL": {
		{"database-user", "USER", "POSTGRESQL_USER", "PostgreSQL Connection Username", "The user that owns the database.", "", userPattern},
		{"database-password", "PASSWORD", "POSTGRESQL_PASSWORD", "PostgreSQL Connection Password", "The password of the user.", "", passwordPattern},
		{"database-name", "DATABASE", "POSTGRESQL_DATABASE", "PostgreSQL Database Name", "The database to create.", "sampledb", ""},
	},
	"MYSQL": {
		{"database-user", "USER", "MYSQL_USER", "MariaDB Connection Username", "The user that owns the database.", "", userPattern},
		{"database-password", "PASSWORD", "MYSQL_PASSWORD", "MariaDB Connection Password", "The password of the user.", "", passwordPattern},
		{"database-root-password", "ROOT_PASSWORD", "MYSQL_ROOT_PASSWORD", "MariaDB root Password", "The password of the user root.", "", passwordPattern},
		{"database-name", "DATABASE", "MYSQL_DATABASE", "MariaDB Database Name", "The database to create.", "sampledb", ""},
	},
	"REDIS": {
		{"database-password", "PASSWORD", "REDIS_PASSWORD", "Redis Connection Password", "The password of all clients.", "", passwordPattern},
	},
}

// exposed returns the name that a binding uses for the secret key with the given parameter.
func exposed(parameter string) string {
	names := map[string]string{"USER": "username", "DATABASE": "database_name"}
	return cmp.Or(names[parameter], strings.ToLower(parameter))
}

// prefixes maps a database's image stream to its parameter prefix.
var prefixes = map[string]string{"postgresql": "POSTGRESQL", "mariadb": "MYSQL", "mysql": "MYSQL", "redis": "REDIS"}

// schemes maps a parameter prefix to the URL scheme of the database's service.
var schemes = map[string]string{"POSTGRESQL": "postgres", "MYSQL": "mysql", "REDIS": "redis"}

// templates returns the templates whose images exist, and the templates for imported images.
func templates(images []*Image) (all []entry, err error) {
	for _, stream := range streams(images) {
		switch {
		case slices.Contains(stream.Tags, "database"):
			for _, persistent := range []bool{true, false} {
				kind := map[bool]string{true: "persistent", false: "ephemeral"}[persistent]
				all = append(all, entry{"database.yaml", fmt.Sprintf("%s-%s", stream.Name, kind), databaseOf(stream, persistent)})
			}
		case stream.Example != "":
			all = append(all, entry{"application.yaml", stream.Name + "-example", application{stream: stream}})
		}
		switch stream.Name {
		case "prometheus":
			all = append(all, entry{"prometheus.yaml", "prometheus-persistent", stream})
		case "python":
			all = append(all, entry{"application.yaml", "python-persistent-example", application{stream: stream, Persistent: true}})
		case "java":
			for _, name := range []string{"openjdk-web-basic-s2i", "openjdk18-web-basic-s2i"} {
				all = append(all, entry{"java.yaml", name, named{stream, name}})
			}
		}
	}
	more, err := frameworks(streams(images))
	all = append(append(all, more...), entry{"static.yaml", "static-page", nil})
	for _, imported := range imports {
		all = append(all, entry{"imported.yaml", imported.Name, imported})
	}
	return append(all, entry{"jenkins.yaml", "jenkins-ephemeral", jenkins{}}, entry{"jenkins.yaml", "jenkins-persistent", jenkins{Persistent: true}}), err
}

// imports lists the images that Slipway does not create. An administrator can import these images.
var imports = []*Image{{
	Name: "jenkins", DisplayName: "Jenkins", Description: "A Jenkins server with the plugins for OpenShift. An administrator must import its image.",
	Icon: "jenkins", Tags: []string{"jenkins"}, Version: "2",
}}

// jenkins is a template that starts a Jenkins server from an imported image.
type jenkins struct {
	// Persistent means that the data is stored on a volume.
	Persistent bool
}

func databaseOf(stream stream, persistent bool) database {
	prefix := prefixes[stream.Name]
	return database{stream: stream, Persistent: persistent, Prefix: prefix, Scheme: schemes[prefix], Keys: keysOf[prefix]}
}

// application describes a template that builds an application from source.
type application struct {
	stream
	// Persistent means that the application stores data on a volume.
	Persistent bool
}

// named describes a template whose name differs from the name of its stream.
type named struct {
	stream
	Template string
}
