// Package sigstore imports image signatures from signature stores. It does not verify the
// signatures.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, 12.4.3.
package sigstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/outbound"
	"github.com/slipway-platform/slipway/internal/signaturestore"
)

// Importer is the component that adds signatures to images in remote registries.
type Importer struct {
	// Deps provides the shared clients and caches.
	Deps *controller.Deps
	// Directory is the directory with the files that define signature stores. It is optional.
	// Without signature stores, the importer is a no-op.
	Directory string
	// Outbound connects to the servers that a store redirects to. The stores themselves can have
	// any address, because the administrator configures them.
	Outbound *outbound.Dialer
}

const (
	// retryInterval is the interval between attempts to find an image's signatures.
	// storePollInterval is the interval between checks of a directory that does not define any
	// stores.
	retryInterval, storePollInterval = time.Hour, 10 * time.Second
)

// Name implements the component interface.
func (*Importer) Name() string { return "image-signatures" }

// Run imports signatures until ctx is done. It calls ready immediately.
func (i *Importer) Run(ctx context.Context, ready func()) error {
	ready()
	for {
		stores, err := signaturestore.Read(i.Directory)
		if err != nil || !stores.Empty() { // reconcile reports the error
			break
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(storePollInterval):
		}
	}
	images := i.Deps.MetadataInformers.ForResource(imagev1.GroupVersion.WithResource("images")).Informer()
	manager := controller.Manager{{
		Name: "image-signatures", Workers: 2, MaxBackoff: retryInterval,
		Watches: []controller.Watch{{Informer: images, Changed: func(_, _ any) bool { return false }}},
		Reconcile: func(ctx context.Context, key controller.Key) error {
			if _, ok, err := images.GetIndexer().GetByKey(key.Name); err != nil || !ok {
				return err
			}
			return i.reconcile(ctx, i.Deps.Images.ImageV1(), key.Name)
		},
	}}
	i.Deps.Start()
	return manager.Run(ctx, func() {})
}

// reconcile adds missing signatures from an image's signature store to the image.
func (i *Importer) reconcile(ctx context.Context, client imageclient.ImageV1Interface, name string) error {
	image, err := client.Images().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if image.Annotations[record.Managed] == "true" { // the image was pushed to the cluster's registry
		return nil
	}
	stores, err := signaturestore.Read(i.Directory)
	if err != nil {
		return err
	}
	signatures, err := i.signatures(ctx, stores, image)
	for _, content := range signatures {
		signature := &imagev1.ImageSignature{Type: "atomic", Content: content}
		signature.Name = name + "@" + identity(content)
		_, problem := client.ImageSignatures().Create(ctx, signature, metav1.CreateOptions{})
		if problem != nil && !apierrors.IsAlreadyExists(problem) && !apierrors.IsNotFound(problem) {
			err = errors.Join(err, problem)
		}
	}
	if err != nil {
		return fmt.Errorf("import signatures of image %q: %w", name, err)
	}
	return controller.RequeueAfter(retryInterval)
}

// identity returns the distinguishing part of a signature's name: 32 characters that are derived
// from the signature's content, so a signature is imported only once.
func identity(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

// signatures returns an image's signatures in its store, up to the first missing signature. If a
// signature cannot be read, it returns the preceding signatures and an error.
func (i *Importer) signatures(ctx context.Context, stores *signaturestore.Stores, image *imagev1.Image) ([][]byte, error) {
	reference, err := record.ParseReference(image.DockerImageReference)
	if err != nil || image.Annotations[record.ReferenceClaimed] == "true" {
		return nil, nil // the pull spec is missing or unverified
	}
	if reference.Digest = image.Name; digest.Digest(image.Name).Validate() != nil {
		return nil, nil
	}
	return signaturestore.Fetch(ctx, i.Outbound, stores.Address(reference.Registry, reference.Repository, reference.Digest))
}
