package content

import (
	"os"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestImagesAreMirroredWithTheirDigests(t *testing.T) {
	from, to := serve(t), serve(t)
	name := push(t, from+"/team/app:v1", image(t, "linux/amd64", tarLayer(t, entry{name: "a", content: "one"})))
	two := push(t, from+"/team/app:v2", image(t, "linux/amd64", tarLayer(t, entry{name: "a", content: "two"})))
	push(t, from+"/team/app:other", image(t, "linux/amd64", tarLayer(t, entry{name: "a", content: "other"})))
	for title, tt := range map[string]struct {
		args []string
		want map[string]string
	}{
		"to several places":   {[]string{from + "/team/app:v1", to + "/rea:x", to + "/reb:y"}, map[string]string{to + "/rea:x": name, to + "/reb:y": name}},
		"in pairs":            {[]string{from + "/team/app:v1=" + to + "/rec:1", from + "/team/app:v2=" + to + "/rec:2"}, map[string]string{to + "/rec:1": name, to + "/rec:2": two}},
		"by digest":           {[]string{from + "/team/app@" + two, to + "/red"}, map[string]string{to + "/red@" + two: two, to + "/red:latest": ""}},
		"all tags that match": {[]string{from + "/team/app:v*", to + "/ree"}, map[string]string{to + "/ree:v1": name, to + "/ree:v2": two, to + "/ree:other": ""}},
		"within the registry": {[]string{from + "/team/app:v1", from + "/copy/app:v1", "--force"}, map[string]string{from + "/copy/app:v1": name}},
		"dry run":             {[]string{from + "/team/app:v1", to + "/ref:v1", "--dry-run"}, map[string]string{to + "/ref:v1": ""}},
	} {
		out, plan, err := oc(t, append([]string{"mirror"}, tt.args...)...)
		if err != nil {
			t.Errorf("%s: %v", title, err)
			continue
		}
		for place, digest := range tt.want {
			if got := digestOf(t, place); got != digest {
				t.Errorf("%s: %s is %q, want %q", title, place, got, digest)
			}
			if digest != "" && !strings.Contains(out, digest+" "+strings.TrimSuffix(place, "@"+digest)) {
				t.Errorf("%s: no message %s:\n%s", title, place, out)
			}
		}
		if !strings.Contains(plan, "stats: shared=") || !strings.Contains(plan, "info: Planning completed") {
			t.Errorf("%s: the plan is\n%s", title, plan)
		}
	}
}

func TestMappingsAreReadFromFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	host := serve(t)
	digest := push(t, host+"/app:v1", image(t, "linux/amd64", tarLayer(t, entry{name: "a", content: "1"})))
	file := write(t, ".", "mappings", []byte("# ours\n\n"+host+"/app:v1="+host+"/rea:1 # one\n"+host+"/app:v1 "+host+"/reb:1 "+host+"/rec:1\n"))
	write(t, ".", "stdin", []byte(host+"/app:v1="+host+"/red:1\n"))
	if _, _, err := oc(t, "mirror", "-f", file, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	for _, repository := range []string{"rea", "reb", "rec", "red"} {
		if got := digestOf(t, host+"/"+repository+":1"); got != digest {
			t.Errorf("%s is %q", repository, got)
		}
	}
	if err := os.WriteFile(file, []byte("a:1\nb:1=c@sha256:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, "mappings:1: \"a:1\" has no destination", "mirror", "-f", file)
	fails(t, "mappings:2: destination", "mirror", "-f", file)
}

func TestMirrorFiltersManifestLists(t *testing.T) {
	host := serve(t)
	amd, arm := image(t, "linux/amd64", tarLayer(t, entry{name: "a", content: "amd"})), image(t, "linux/arm64", tarLayer(t, entry{name: "a", content: "arm"}))
	full := push(t, host+"/app:v1", newIndex(t, map[string]v1.Image{"linux/amd64": amd, "linux/arm64": arm, "linux/s390x": image(t, "linux/s390x")}))
	if _, _, err := oc(t, "mirror", host+"/app:v1", host+"/whole:v1"); err != nil {
		t.Fatal(err)
	}
	if got := digestOf(t, host+"/whole:v1"); got != full {
		t.Errorf("the list is %s, was %s", got, full)
	}
	if _, _, err := oc(t, "mirror", host+"/app:v1", host+"/one:v1", "--filter-by-os=arm64"); err != nil {
		t.Fatal(err)
	}
	digest, err := arm.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got := digestOf(t, host+"/one:v1"); got != digest.String() {
		t.Errorf("the single image is %s, want %s", got, digest)
	}
	if _, _, err := oc(t, "mirror", host+"/app:v1", host+"/two:v1", "--filter-by-os=a..64"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := oc(t, "info", host+"/two:v1", "--filter-by-os=s390x"); err == nil || !strings.Contains(err.Error(), "linux/arm64") {
		t.Errorf("the shorter list: %v", err)
	}
	fails(t, "has no matching image", "mirror", host+"/app:v1", host+"/none:v1", "--filter-by-os=windows")
}

func TestMirrorReportsInvalidArguments(t *testing.T) {
	host := serve(t)
	push(t, host+"/app:v1", image(t, "linux/amd64", tarLayer(t, entry{name: "a", content: "1"})))
	push(t, host+"/app:v2", image(t, "linux/amd64", tarLayer(t, entry{name: "a", content: "2"})))
	fails(t, "specify the images to copy", "mirror")
	fails(t, "has no destination", "mirror", host+"/app:v1")
	fails(t, "must be SOURCE=DESTINATION", "mirror", "a:1=b:1", "c:1")
	fails(t, "set a tag or a digest", "mirror", host+"/app", host+"/reb:1")
	fails(t, "must not have a tag", "mirror", host+"/app:*", host+"/reb:1")
	fails(t, "none of the repository's 2 tags", "mirror", host+"/app:x*", host+"/reb")
	fails(t, "is specified for two images", "mirror", host+"/app:v1="+host+"/reb:1", host+"/app:v2="+host+"/reb:1")
	fails(t, "does not have the image", "mirror", host+"/app:v3", host+"/reb:1")
	fails(t, "no such file", "mirror", "-f", "missing")
}
