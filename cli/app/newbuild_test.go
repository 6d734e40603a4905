package app

import (
	"strings"
	"testing"
)

func TestSourceImagePathsAreParsed(t *testing.T) {
	for path, want := range map[string]string{
		"/opt/a:public/b": "/opt/a public/b", "/opt/a": "/opt/a .", "": "--source-image-path must be specified", ":a": "PATH:DIRECTORY", "/opt/a:": "PATH:DIRECTORY", "/opt/a:/etc": "PATH:DIRECTORY",
		"/opt/a:../up": "PATH:DIRECTORY",
	} {
		o := &newBuild{sourcePath: path}
		o.request.Options.SourceImage = "assets"
		got := ""
		if err := o.readSourceImage(); err != nil {
			got = err.Error()
		}
		for _, read := range o.request.Options.SourcePaths {
			got = read.SourcePath + " " + read.DestinationDir
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
	if err := (&newBuild{sourcePath: "/a:b"}).readSourceImage(); err == nil {
		t.Error("a path without an image is accepted")
	}
}
