package registry

import (
	"bytes"
	"strings"
	"testing"

	"github.com/distribution/reference"
)

const someDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func FuzzReadSignature(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"type":"atomic","name":"`+someDigest+`@0123456789abcdef0123456789abcdef","content":"c2ln"}`), someDigest)
	f.Add([]byte(`{"version":2,"name":"@"}`), "")
	f.Add([]byte(`[{"schemaVersion":"2"}]`), someDigest)
	f.Fuzz(func(t *testing.T, body []byte, image string) {
		if read, err := readSignature(bytes.NewReader(body), image); err == nil && !strings.HasPrefix(read.Name+"@", image+"@") {
			t.Errorf("a signature of %q is accepted for %q", read.Name, image)
		}
	})
}

func FuzzSubject(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"subject":{"digest":"` + someDigest + `","size":1}}`))
	f.Add([]byte(`{"subject":null}`))
	f.Add([]byte(`{"subject":{"digest":"sha256:../../.."}}`))
	f.Fuzz(func(t *testing.T, manifest []byte) {
		subject := subjectOf(manifest)
		if subject == "" || subject.Validate() != nil {
			return // the input is rejected
		}
		if dir := referrerDir("shop/app", subject, someDigest); !strings.HasPrefix(dir, repositoriesDir+"/shop/app/"+referrersDir+"/") {
			t.Errorf("subject %q is recorded at %q", subject, dir)
		}
	})
}

func FuzzReferrersPath(f *testing.F) {
	f.Add("/v2/shop/app/referrers/" + someDigest)
	f.Add("/v2/../../referrers/x")
	f.Add("/v2//referrers/")
	f.Fuzz(func(t *testing.T, path string) {
		name, _, ok := referrersPath(path)
		if !ok {
			return
		}
		read, err := target{}.in(name)
		if _, bad := reference.WithName(name); err == nil && (bad != nil || read.repository() != name) {
			t.Errorf("%q is read as repository %q", path, read.repository())
		}
	})
}
