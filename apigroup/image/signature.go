package image

import (
	"context"
	"fmt"
	"slices"

	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/util/retry"
)

// signatures creates and deletes image signatures. A signature's name is the image's name, followed
// by 32 characters, as in "sha256:...@0123...".
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapter 12.
type signatures struct{ view }

var (
	_ rest.Creater              = &signatures{}
	_ rest.GracefulDeleter      = &signatures{}
	_ rest.SingularNameProvider = &signatures{}
)

// New implements rest.Storage.
func (*signatures) New() runtime.Object { return &imagev1.ImageSignature{} }

// NamespaceScoped implements rest.Scoper.
func (*signatures) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (*signatures) GetSingularName() string { return "imagesignature" }

// Create adds a signature. It clears the fields that describe the signature's content, because only
// verification can set them.
func (s *signatures) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	signature := object.(*imagev1.ImageSignature)
	imageName, _, err := split(signature.Name, "@", "imageSignature")
	if err != nil {
		return nil, err
	}
	if problems := validateSignature(signature, nil); len(problems) > 0 {
		return nil, apierrors.NewInvalid(imagev1.GroupVersion.WithKind("ImageSignature").GroupKind(), signature.Name, problems)
	}
	if err := validate(ctx, signature); err != nil {
		return nil, err
	}
	signature.Conditions, signature.SignedClaims, signature.ImageIdentity = nil, nil, ""
	signature.IssuedBy, signature.IssuedTo, signature.Created = nil, nil, nil
	err = s.change(ctx, imageName, options.DryRun, func(image *imagev1.Image) error {
		if find(image, signature.Name) >= 0 {
			return apierrors.NewAlreadyExists(imagev1.Resource("imagesignatures"), signature.Name)
		}
		image.Signatures = append(image.Signatures, *signature)
		return nil
	})
	return signature, err
}

// Delete deletes a signature.
func (s *signatures) Delete(ctx context.Context, name string, validate rest.ValidateObjectFunc, options *metav1.DeleteOptions) (runtime.Object, bool, error) {
	imageName, _, err := split(name, "@", "imageSignature")
	if err != nil {
		return nil, false, err
	}
	if err := validate(ctx, &imagev1.ImageSignature{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		return nil, false, err
	}
	err = s.change(ctx, imageName, options.DryRun, func(image *imagev1.Image) error {
		i := find(image, name)
		if i < 0 {
			return apierrors.NewNotFound(imagev1.Resource("imagesignatures"), name)
		}
		image.Signatures = slices.Delete(image.Signatures, i, i+1)
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, true, nil
}

func find(image *imagev1.Image, signature string) int {
	return slices.IndexFunc(image.Signatures, func(s imagev1.ImageSignature) bool { return s.Name == signature })
}

func (s *signatures) change(ctx context.Context, imageName string, dryRun []string, change func(*imagev1.Image) error) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := s.images.Get(ctx, imageName, &metav1.GetOptions{})
		if err != nil {
			return err
		}
		image := object.(*imagev1.Image).DeepCopy()
		if err := change(image); err != nil {
			return err
		}
		_, _, err = s.images.Update(ctx, imageName, rest.DefaultUpdatedObjectInfo(image), rest.ValidateAllObjectFunc,
			rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{DryRun: dryRun})
		return err
	})
}

// signatureNameLength is the number of characters that distinguish an image's signatures.
const signatureNameLength = 32

func validateSignature(signature *imagev1.ImageSignature, at *field.Path) (problems field.ErrorList) {
	if _, id, err := split(signature.Name, "@", "imageSignature"); err != nil || len(id) != signatureNameLength {
		problems = append(problems, field.Invalid(at.Child("metadata", "name"), signature.Name,
			fmt.Sprintf("must be <image>@<%d characters>", signatureNameLength)))
	}
	if signature.Type == "" {
		problems = append(problems, field.Required(at.Child("type"), "set the type of the signature"))
	}
	if len(signature.Content) == 0 {
		problems = append(problems, field.Required(at.Child("content"), "set the content of the signature"))
	}
	return problems
}
