package content

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// s3 is an S3 server that has a bucket named images.
type s3 struct {
	endpoint string
	public   string       // address at which clients read the bucket
	uploads  atomic.Int32 // number of uploaded blobs
	copies   atomic.Int32
}

func serveS3(t *testing.T) *s3 {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("images"); err != nil {
		t.Fatal(err)
	}
	result, api := &s3{}, gofakes3.New(backend).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/blobs/") {
			if r.Header.Get("X-Amz-Copy-Source") != "" {
				result.copies.Add(1)
			} else {
				result.uploads.Add(1)
			}
		}
		api.ServeHTTP(w, r)
	}))
	public := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/images" + r.URL.Path
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.Close()
		public.Close()
	})
	result.endpoint, result.public = "s3://"+strings.TrimPrefix(server.URL, "http://"), strings.TrimPrefix(public.URL, "http://")
	t.Setenv("AWS_ACCESS_KEY_ID", "ann")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	return result
}

// pull returns the digest of an image or manifest list. It checks that the bucket contains all
// content that the manifest refers to.
func (s *s3) pull(t *testing.T, reference string) string {
	t.Helper()
	parsed, err := name.ParseReference(s.public + "/" + reference)
	if err != nil {
		t.Fatal(err)
	}
	desc, err := remote.Get(parsed)
	if err != nil {
		t.Fatal(err)
	}
	if desc.MediaType.IsIndex() {
		index, problem := desc.ImageIndex()
		if err = problem; err == nil {
			err = validate.Index(index)
		}
	} else {
		image, problem := desc.Image()
		if err = problem; err == nil {
			err = validate.Image(image)
		}
	}
	if err != nil {
		t.Errorf("pull %s: %v", reference, err)
	}
	return desc.Digest.String()
}

func TestImagesAreMirroredToS3(t *testing.T) {
	host, s := serve(t), serveS3(t)
	to := s.endpoint + "/us-east-1/images"
	name := push(t, host+"/team/app:v1", image(t, "linux/amd64", tarLayer(t, entry{name: "a", content: "one"})))
	amd, arm := image(t, "linux/amd64", tarLayer(t, entry{name: "a", content: "amd"})), image(t, "linux/arm64", tarLayer(t, entry{name: "a", content: "arm"}))
	list := push(t, host+"/team/list:v1", newIndex(t, map[string]v1.Image{"linux/amd64": amd, "linux/arm64": arm}))
	out, _, err := oc(t, "mirror", "--insecure", host+"/team/app:v1="+to+"/team/app:v1", host+"/team/list:v1="+to+"/list:stable", host+"/team/app:v1="+to+"/team/quiet")
	if err != nil {
		t.Fatal(err)
	}
	for reference, want := range map[string]string{"team/app:v1": name, "team/app@" + name: name, "list:stable": list, "team/quiet@" + name: name} {
		if got := s.pull(t, reference); got != want {
			t.Errorf("%s is %s, want %s", reference, got, want)
		}
	}
	if !strings.Contains(out, name+" "+to+"/team/app:v1") || !strings.Contains(out, name+" "+to+"/team/quiet\n") {
		t.Errorf("output\n%s", out)
	}
	before := s.uploads.Load()
	if _, _, err := oc(t, "mirror", "--insecure", host+"/team/app:v1", to+"/team/app:v2"); err != nil {
		t.Fatal(err)
	}
	if second := s.uploads.Load() - before; second != 0 || s.pull(t, "team/app:v2") != name {
		t.Errorf("%d blobs were sent although the bucket had them", second)
	}
	copies := s.copies.Load()
	if _, _, err := oc(t, "mirror", "--insecure", "--s3-source-bucket=images/v2/team/app/blobs", host+"/team/app:v1", to+"/other/app:v1"); err != nil {
		t.Fatal(err)
	}
	if second := s.uploads.Load() - before; second != 0 || s.copies.Load() == copies || s.pull(t, "other/app:v1") != name {
		t.Errorf("%d blobs were sent although another path of the bucket had them", second)
	}
	if _, _, err := oc(t, "mirror", "--insecure", "--force", host+"/team/app:v1", to+"/team/app:v3"); err != nil || s.uploads.Load() == before {
		t.Errorf("with --force %d blobs were sent, %v", s.uploads.Load()-before, err)
	}
}

func TestMirrorToS3ReportsInvalidArguments(t *testing.T) {
	host, s := serve(t), serveS3(t)
	push(t, host+"/team/app:v1", image(t, "linux/amd64", tarLayer(t, entry{name: "a", content: "one"})))
	for _, destination := range []string{"s3://bucket/app:v1", "s3://minio/us-east-1/images/app:v1", "s3://minio:9000//images/app:v1", "s3://minio:9000/us-east-1//app:v1"} {
		fails(t, "must be s3://HOST/REGION/BUCKET/REPOSITORY:TAG", "mirror", host+"/team/app:v1", destination)
	}
	fails(t, "not to or from s3://", "mirror", s.endpoint+"/us-east-1/images/app:v1", host+"/reb:1")
	fails(t, "bucket does not exist", "mirror", "--insecure", host+"/team/app:v1", s.endpoint+"/us-east-1/other/app:v1")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
	fails(t, "set AWS_ACCESS_KEY_ID", "mirror", "--insecure", host+"/team/app:v1", s.endpoint+"/us-east-1/images/app:v1")
}
