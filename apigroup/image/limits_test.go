package image

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/random"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// limitsOf returns the limits of the shop project. The project has a LimitRange with high maximums
// and a LimitRange with the given maximums.
func limitsOf(t *testing.T, kind corev1.LimitType, maximum map[corev1.ResourceName]string) limits {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	lax := corev1.ResourceList{}
	strict := corev1.ResourceList{}
	for of, quantity := range maximum {
		lax[of], strict[of] = resource.MustParse("1Ti"), resource.MustParse(quantity)
	}
	for name, list := range map[string]corev1.ResourceList{"lax": lax, "strict": strict} {
		result := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		result.Spec.Limits = []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: strict}, {Type: kind, Max: list}}
		if err := indexer.Add(result); err != nil {
			t.Fatal(err)
		}
	}
	return limits{corelisters.NewLimitRangeLister(indexer)}
}

func sized(size int64) *imagev1.Image {
	return &imagev1.Image{
		ObjectMeta:          metav1.ObjectMeta{Name: id},
		DockerImageMetadata: runtime.RawExtension{Raw: []byte(`{"Size":` + strconv.FormatInt(size, 10) + `}`)},
	}
}

func TestImageSizeLimit(t *testing.T) {
	limited := limitsOf(t, imagev1.LimitTypeImage, map[corev1.ResourceName]string{corev1.ResourceStorage: "1Mi"})
	for name, tt := range map[string]struct {
		namespace string
		images    []*imagev1.Image
		want      string
	}{
		"as large as allowed":                 {"shop", []*imagev1.Image{sized(1 << 20)}, ""},
		"larger":                              {"shop", []*imagev1.Image{sized(2 << 20)}, `maximum storage usage per openshift.io/Image is 1Mi by LimitRange "strict", but it would be 2Mi`},
		"one of several images":               {"shop", []*imagev1.Image{sized(1), sized(2 << 20)}, "but it would be 2Mi"},
		"of an unknown size":                  {"shop", []*imagev1.Image{{}}, `its size is unknown, but LimitRange "strict" limits it`},
		"in another project":                  {"bank", []*imagev1.Image{sized(2 << 20)}, ""},
		"of unknown size, in another project": {"bank", []*imagev1.Image{{}}, ""},
		"none":                                {"shop", nil, ""},
	} {
		err := limited.checkImage(tt.namespace, tt.images...)
		if tt.want == "" && err != nil || tt.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// streamOf returns a stream whose tags refer to from. The history of its first tag contains images.
func streamOf(from []corev1.ObjectReference, images ...string) *imagev1.ImageStream {
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	for n := range from {
		stream.Spec.Tags = append(stream.Spec.Tags, imagev1.TagReference{Name: "t" + strconv.Itoa(n), From: &from[n]})
	}
	for _, image := range images {
		addEvent(stream, "t0", imagev1.TagEvent{Image: image, DockerImageReference: "registry.example.com/app@" + image})
	}
	return stream
}

func TestStreamLimits(t *testing.T) {
	limited := limitsOf(t, imagev1.LimitTypeImageStream, map[corev1.ResourceName]string{imagev1.ResourceImageStreamTags: "2", imagev1.ResourceImageStreamImages: "2"})
	external := func(name string) corev1.ObjectReference { return corev1.ObjectReference{Kind: dockerKind, Name: name} }
	tag := func(namespace, name string) corev1.ObjectReference {
		return corev1.ObjectReference{Kind: tagKind, Namespace: namespace, Name: name}
	}
	three := streamOf([]corev1.ObjectReference{external("a"), external("b"), external("c")}, "1", "2", "3")
	const references = `spec.tags: Forbidden: maximum openshift.io/image-tags usage per openshift.io/ImageStream is 2 by LimitRange "strict", but it would be 3`
	const images = `status.tags: Forbidden: maximum openshift.io/images usage per openshift.io/ImageStream is 2 by LimitRange "strict", but it would be 3`
	for name, tt := range map[string]struct {
		stream, old *imagev1.ImageStream
		want        string
	}{
		"two of each":                       {streamOf([]corev1.ObjectReference{external("a"), external("b")}, "1", "2"), nil, ""},
		"three references":                  {streamOf([]corev1.ObjectReference{external("a"), external("b"), external("c")}), nil, references},
		"repeated reference":                {streamOf([]corev1.ObjectReference{external("a"), external("a"), tag("", "app:t0"), tag("shop", "t0")}), nil, ""},
		"tags of other projects":            {streamOf([]corev1.ObjectReference{tag("", "app:v1"), tag("bank", "app:v1"), tag("corp", "app:v1")}), nil, references},
		"three images":                      {streamOf(nil, "1", "2", "3"), streamOf(nil, "1", "2"), images},
		"repeated image":                    {streamOf(nil, "1", "2", "1"), streamOf(nil, "1", "2"), ""},
		"above the limit before, no growth": {three, three, ""},
	} {
		if got := limited.checkStream(tt.stream, tt.old); (len(got) == 0) != (tt.want == "") || len(got) > 0 && got.ToAggregate().Error() != tt.want {
			t.Errorf("%s: %v, want %q", name, got, tt.want)
		}
	}
	three.Namespace = "bank"
	if got := limited.checkStream(three, nil); len(got) != 0 {
		t.Errorf("in another project: %v", got)
	}
}

func TestStreamUpdateOverLimitIsRejected(t *testing.T) {
	streams := &streams{limits: limitsOf(t, imagev1.LimitTypeImageStream, map[corev1.ResourceName]string{imagev1.ResourceImageStreamTags: "1", imagev1.ResourceImageStreamImages: "1"})}
	from := []corev1.ObjectReference{{Kind: dockerKind, Name: "a"}, {Kind: dockerKind, Name: "b"}}
	pointed := streamOf(from)
	setStreamDefaults(pointed)
	if problems := streams.validate(t.Context(), pointed, nil); len(problems) != 1 || problems[0].Field != "spec.tags" {
		t.Errorf("two references: %v", problems)
	}
	if problems := streams.validateStatus(t.Context(), streamOf(nil, "1", "2"), streamOf(nil, "1")); len(problems) != 1 || problems[0].Field != "status.tags" {
		t.Errorf("two images: %v", problems)
	}
}

func TestPushOverLimitIsRejected(t *testing.T) {
	large := &mappings{limits: limitsOf(t, imagev1.LimitTypeImage, map[corev1.ResourceName]string{corev1.ResourceStorage: "1Mi"})}
	many := &mappings{limits: limitsOf(t, imagev1.LimitTypeImageStream, map[corev1.ResourceName]string{imagev1.ResourceImageStreamImages: "1"})}
	stream := streamOf(nil, "1")
	if err := large.checkLimits(stream, "latest", sized(2<<20), imagev1.TagEvent{Image: "2"}); !apierrors.IsForbidden(err) {
		t.Errorf("a large image: %v", err)
	}
	if err := many.checkLimits(stream, "latest", sized(1), imagev1.TagEvent{Image: "2"}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `by LimitRange "strict"`) {
		t.Errorf("push above the limit: %v", err)
	}
	image := sized(1)
	image.Name = "1"
	if err := many.checkLimits(stream, "latest", image, imagev1.TagEvent{Image: "1", DockerImageReference: stream.Status.Tags[0].Items[0].DockerImageReference}); err != nil {
		t.Errorf("an image that the stream has: %v", err)
	}
	if history(stream, "latest") != nil {
		t.Error("the stream was changed")
	}
}

func TestImportSkipsRejectedImages(t *testing.T) {
	host := otherRegistry(t)
	for tag, size := range map[string]int64{"v1": 100, "v2": 1 << 20, "v3": 200, "v4": 300} {
		result, err := random.Image(size, 1)
		if err != nil {
			t.Fatal(err)
		}
		push(t, host+"/team/app:"+tag, result)
	}
	large := limitsOf(t, imagev1.LimitTypeImage, map[corev1.ResourceName]string{corev1.ResourceStorage: "100Ki"})
	many := limitsOf(t, imagev1.LimitTypeImageStream, map[corev1.ResourceName]string{imagev1.ResourceImageStreamImages: "2"})
	pointed := limitsOf(t, imagev1.LimitTypeImageStream, map[corev1.ResourceName]string{imagev1.ResourceImageStreamTags: "3"})
	for name, tt := range map[string]struct {
		limits   limits
		rejected string // numbers of the rejected tags
	}{"large images": {large, "2"}, "many images": {many, "34"}, "many references": {pointed, "4"}} {
		imports := &imports{limits: tt.limits, fetchTimeout: fetchTimeout}
		desired := importOf(host+"/team/app:v1", host+"/team/app:v2", host+"/team/app:v3", host+"/team/app:v4")
		stream := streamOf(nil)
		results, err := imports.refuse(stream, imports.fetch(t.Context(), reading(t), desired))
		if err != nil {
			t.Fatal(err)
		}
		setResults(desired, results)
		point(stream, desired, results)
		recordResults(stream, results)
		for n, withHistory := range desired.Status.Images {
			number := strconv.Itoa(n + 1)
			rejected := strings.Contains(tt.rejected, number)
			if rejected != (withHistory.Status.Reason == metav1.StatusReasonForbidden) || rejected != (withHistory.Image == nil) ||
				rejected && !strings.Contains(withHistory.Status.Message, `by LimitRange "strict"`) {
				t.Errorf("%s: v%s: %+v", name, number, withHistory.Status)
			}
			if has := len(history(stream, "v"+number)) == 1; has == rejected {
				t.Errorf("%s: the tag v%s has an image: %v", name, number, has)
			}
		}
		if problems := tt.limits.checkStream(stream, nil); len(problems) != 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
}

func TestImagesOfOtherStreamsAreChecked(t *testing.T) {
	tag := func(kind, namespace, name string) corev1.ObjectReference {
		return corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name}
	}
	const large = "sha256:9"
	for name, tt := range map[string]struct {
		from corev1.ObjectReference
		old  *imagev1.ImageStream
		want bool
	}{
		"a tag of another project":                  {tag(tagKind, "bank", "app:v1"), nil, true},
		"a tag of another stream":                   {tag(tagKind, "", "other:v1"), streamOf(nil, "sha256:1"), true},
		"an image of another stream":                {tag(imageKind, "", "other@"+large), nil, true},
		"an image that the stream already had":      {tag(tagKind, "", "other:v1"), streamOf(nil, "sha256:1", large, "sha256:2"), false},
		"a tag of the same stream":                  {tag(tagKind, "", "v1"), nil, false},
		"a tag of the same stream by its full name": {tag(tagKind, "shop", "app:v1"), nil, false},
		"an image of another registry":              {tag(dockerKind, "", "registry.example.com/app"), nil, false},
		"a stream of a project of another user":     {tag(tagKind, "bank", "app:v1"), streamOf(nil, large), false},
	} {
		got := newTags(streamOf([]corev1.ObjectReference{tt.from}, "sha256:1", large), tt.old)
		if len(got) > 1 || (got[0] == large) != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSizeOfIndexIsSumOfImages(t *testing.T) {
	reads := 0
	read := func(_ context.Context, id string) (*imagev1.Image, error) {
		reads++
		image := &imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: id}}
		if size, err := strconv.Atoi(id); err == nil {
			for n := range size {
				image.DockerImageManifests = append(image.DockerImageManifests, imagev1.ImageManifest{Digest: fmt.Sprintf("child %d", n)})
			}
		}
		return image, nil
	}
	for id, want := range map[string]int{"one": 1, "2": 2, strconv.Itoa(maxImages): maxImages} {
		if got, err := sizedRecords(t.Context(), id, read); err != nil || len(got) != want {
			t.Errorf("%s: %d images, %v, want %d", id, len(got), err, want)
		}
	}
	reads = 0
	if _, err := sizedRecords(t.Context(), strconv.Itoa(maxImages+1), read); err == nil || !strings.Contains(err.Error(), "the limit is 100") || reads != 1 {
		t.Errorf("too many images: %v after %d reads", err, reads)
	}
}
