package apiserver

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// podOf returns a pod with many empty containers, as protobuf.
func podOf(t *testing.T, containers int) string {
	t.Helper()
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, containers)}}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	return encode(t, pod)
}

// withPaths returns a config map with many field paths, as protobuf.
func withPaths(t *testing.T, number int) string {
	t.Helper()
	config := &corev1.ConfigMap{}
	config.APIVersion, config.Kind = "v1", "ConfigMap"
	config.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:a":{}` + strings.Repeat(`,"f:b":{}`, number) + "}")}}}
	return encode(t, config)
}

func encode(t *testing.T, object runtime.Object) string {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var body bytes.Buffer
	if err := protobuf.NewSerializer(scheme, scheme).Encode(object, &body); err != nil {
		t.Fatal(err)
	}
	return body.String()
}

func TestBodiesThatExpandAreRejected(t *testing.T) {
	fields := func(key string) string {
		return `{"metadata": {"managedFields": [{"fieldsV1": {"f:a": {}` + strings.Repeat(`, "`+key+`": {}`, maxPaths) + `}}]}}`
	}
	review := request.RequestInfo{IsResourceRequest: true, APIGroup: "authorization.k8s.io"}
	list := func(values int) string { return `{"spec": {"containers": [{}` + strings.Repeat(",{}", values) + `]}}` }
	for name, tt := range map[string]struct {
		content, body string
		info          request.RequestInfo
		groups        []string
		wantErr       bool
	}{
		"JSON":                                {content: "application/json", body: list(maxValues), wantErr: true},
		"without a type":                      {body: list(maxValues), wantErr: true},
		"a strategic patch":                   {content: "application/strategic-merge-patch+json", body: list(maxPatchValues), wantErr: true},
		"a JSON patch":                        {content: "application/json-patch+json", body: list(maxPatchValues), wantErr: true},
		"a small patch":                       {content: "application/strategic-merge-patch+json", body: list(maxPatchValues / 4)},
		"a merge patch":                       {content: "application/merge-patch+json", body: list(maxValues), wantErr: true},
		"little JSON":                         {content: "application/json", body: list(maxValues / 4)},
		"a long text":                         {content: "application/json", body: `{"data": {"a": "` + strings.Repeat("{,", maxValues) + `"}}`},
		"YAML in lines":                       {content: "application/yaml", body: "spec:\n  containers:\n" + strings.Repeat("  -\n", maxValues), wantErr: true},
		"YAML in a line":                      {content: "application/apply-patch+yaml", body: list(maxValues), wantErr: true},
		"YAML with a quotation":               {content: "application/yaml", body: "# \"\nspec: {containers: [{}" + strings.Repeat(",{}", maxValues) + "]}", wantErr: true},
		"YAML with returns":                   {content: "application/yaml", body: "spec:\n  containers:\r" + strings.Repeat("  -\r", maxValues), wantErr: true},
		"JSON text as YAML":                   {content: "application/apply-patch+yaml", body: `{"data": {"a": "` + strings.Repeat("{,", maxValues) + `"}}`},
		"YAML with an alias":                  {content: "application/yaml", body: "a: &a text\nb: *a\n"},
		"YAML with long aliases":              {content: "application/yaml", body: "a: &a " + strings.Repeat("x", 1<<16) + "\nb: [" + strings.Repeat("*a,", 100) + "]", wantErr: true},
		"YAML with many aliases":              {content: "application/apply-patch+yaml", body: "a: &a [" + strings.Repeat("1,", 1000) + "]\nb: [" + strings.Repeat("*a,", 100) + "]", wantErr: true},
		"field paths":                         {content: "application/json", body: fields("f:b"), info: review, wantErr: true},
		"escaped field paths":                 {content: "application/json", body: fields(`\u0066:b`), info: review, wantErr: true},
		"escaped colons":                      {content: "application/json", body: fields(`f\u003ab`), info: review, wantErr: true},
		"field paths in YAML":                 {content: "application/yaml", body: "# \n" + fields("f:b"), info: review, wantErr: true},
		"other keys":                          {content: "application/json", body: fields("fb"), info: review},
		"field paths, protobuf":               {content: "application/vnd.kubernetes.protobuf", body: withPaths(t, maxPaths), wantErr: true},
		"few paths, protobuf":                 {content: "application/vnd.kubernetes.protobuf", body: withPaths(t, maxPaths/4)},
		"protobuf":                            {content: "application/vnd.kubernetes.protobuf", body: podOf(t, maxValues+2), wantErr: true},
		"little protobuf":                     {content: "application/vnd.kubernetes.protobuf", body: podOf(t, maxValues/4)},
		"a long text, protobuf":               {content: "application/vnd.kubernetes.protobuf", body: "k8s\x00\x12\x80\x80\x40" + strings.Repeat("text of a file\n", 1<<20/15+1)},
		"protobuf after a gap":                {content: "application/vnd.kubernetes.protobuf", body: "k8s\x00\xf8\xff\xff\xff\xff\xff\xff\xff\xff\x78\x01\x1b\x1c" + podOf(t, maxValues+2)[4:], wantErr: true},
		"for a pod's own port":                {content: "application/json", body: list(maxValues), info: request.RequestInfo{IsResourceRequest: true, Namespace: "shop", Subresource: "proxy"}},
		"a group of users":                    {content: "application/json", body: list(maxValues), info: request.RequestInfo{IsResourceRequest: true, APIGroup: "user.openshift.io"}},
		"a custom resource":                   {content: "application/json", body: list(maxValues), info: request.RequestInfo{IsResourceRequest: true, Namespace: "shop", APIGroup: "example.com"}},
		"a large custom resource":             {content: "application/json", body: list(maxLooseValues), info: request.RequestInfo{IsResourceRequest: true, Namespace: "shop", APIGroup: "example.com"}, wantErr: true},
		"a large object of the administrator": {content: "application/json", body: list(maxValues), groups: []string{user.SystemPrivilegedGroup}},
	} {
		for way, reader := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "read with the end of the body": iotest.DataErrReader, "halved": iotest.HalfReader,
		} {
			if !tt.info.IsResourceRequest {
				tt.info = request.RequestInfo{IsResourceRequest: true, Namespace: "shop"}
			}
			r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(reader(strings.NewReader(tt.body))))
			r.Header.Set("Content-Type", tt.content)
			r = r.WithContext(request.WithUser(request.WithRequestInfo(r.Context(), &tt.info), &user.DefaultInfo{Name: "mallory", Groups: tt.groups}))
			var err error
			NewCosts(func(*http.Request) string { return "user mallory" }).Bound(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				var read []byte
				if read, err = io.ReadAll(r.Body); err == nil && string(read) != tt.body {
					err = errors.New("the body was changed")
				}
			})).ServeHTTP(httptest.NewRecorder(), r)
			if apierrors.IsRequestEntityTooLargeError(err) != tt.wantErr || !tt.wantErr && err != nil {
				t.Errorf("%s, %s: %v", name, way, err)
			}
		}
	}
}
