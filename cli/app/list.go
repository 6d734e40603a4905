package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	templatev1 "github.com/openshift/api/template/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/cli/app/newapp"
	"github.com/slipway-platform/slipway/cli/objects"
)

// show prints all image streams and templates (--list), or only those that match the search terms.
func (o *newApp) show(ctx context.Context, finder *newapp.Finder, args []string) error {
	args, err := o.terms(args)
	if err != nil {
		return err
	}
	terms := func(names []string) []string { return append(slices.Clone(args), names...) }
	all := o.list || len(args) > 0
	var (
		templates []templatev1.Template
		streams   []imagev1.ImageStream
	)
	for _, project := range slices.Compact([]string{finder.Namespace, "openshift"}) {
		templateList, err := finder.Templates.Templates(project).List(ctx, metav1.ListOptions{})
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
		if err == nil && (all || len(o.templates) > 0) {
			for _, item := range templateList.Items {
				if o.matches(item.Name, terms(o.templates)) {
					templates = append(templates, item)
				}
			}
		}
		streamList, err := finder.Images.ImageStreams(project).List(ctx, metav1.ListOptions{})
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
		if err == nil && (all || len(o.streams) > 0) {
			for _, item := range streamList.Items {
				if o.matches(item.Name, terms(o.streams)) {
					streams = append(streams, item)
				}
			}
		}
	}
	var images []*newapp.Image
	if o.search {
		for _, name := range terms(o.images) {
			image, _, err := finder.Find(ctx, newapp.Component{From: name, Kind: newapp.ImageKind})
			var none *newapp.NotFound
			if err != nil && !errors.As(err, &none) {
				return err
			}
			if err == nil && !image.Missing {
				images = append(images, image)
			}
		}
	}
	if len(templates)+len(streams)+len(images) == 0 {
		return errors.New("no matches found")
	}
	if objects.ReplacesCreation(*o.print.OutputFormat) {
		return o.printObjects(templates, streams)
	}
	o.printFound(templates, streams, images)
	return nil
}

// printObjects prints templates and image streams as a List in the -o format.
func (o *newApp) printObjects(templates []templatev1.Template, streams []imagev1.ImageStream) error {
	var all []*unstructured.Unstructured
	add := func(kind schema.GroupVersionKind, object any) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return fmt.Errorf("convert %s: %w", kind.Kind, err)
		}
		item := &unstructured.Unstructured{Object: content}
		item.SetGroupVersionKind(kind)
		all = append(all, item)
		return nil
	}
	var problems []error
	for i := range templates {
		problems = append(problems, add(templatev1.GroupVersion.WithKind("Template"), &templates[i]))
	}
	for i := range streams {
		problems = append(problems, add(imagev1.GroupVersion.WithKind("ImageStream"), &streams[i]))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return objects.PrintList(o.print, all, o.Out)
}

// terms returns the names in the arguments, split at plus signs. It returns an error for arguments
// and flags that are valid only for creating an application.
func (o *newApp) terms(args []string) (names []string, err error) {
	components, variables, err := newapp.Arguments(append(slices.Clone(args), o.groups...))
	if err != nil {
		return nil, err
	}
	for _, component := range components {
		if component.Source != "" || component.Kind == newapp.FileKind {
			return nil, fmt.Errorf("--search can't be used with source code or files: remove %q", cmp.Or(component.Source, component.From))
		}
		names = append(names, component.From)
	}
	switch {
	case o.list && o.search:
		return nil, errors.New("use only one of --list and --search")
	case o.list && len(names)+len(o.images)+len(o.streams)+len(o.templates) > 0:
		return nil, errors.New("--list accepts no names; to search for names, use --search")
	case len(o.code)+len(o.files) > 0:
		return nil, errors.New("--list and --search can't be used with source code and files")
	case len(variables)+len(o.env)+len(o.envFiles)+len(o.buildEnv)+len(o.buildEnvFiles)+len(o.params)+len(o.paramFiles) > 0:
		return nil, errors.New("--list and --search can't be used with --env, --build-env or --param: they create no objects")
	case o.search && len(names)+len(o.images)+len(o.streams)+len(o.templates) == 0:
		return nil, errors.New("specify what to search for, such as: oc new-app -S php")
	}
	return names, nil
}

// matches reports whether a name contains one of the search terms. It ignores a term's project and
// tag. Without terms, every name matches.
func (o *newApp) matches(name string, terms []string) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(term string) bool {
		_, bare, qualified := strings.Cut(term, "/")
		if !qualified {
			bare = term
		}
		bare, _, _ = strings.Cut(bare, ":")
		return strings.Contains(name, bare)
	})
}

func (o *newApp) printFound(templates []templatev1.Template, streams []imagev1.ImageStream, images []*newapp.Image) {
	if len(templates) > 0 {
		fmt.Fprintln(o.Out, "Templates (oc new-app --template=<template>)\n-----")
		for _, item := range templates {
			description, _, _ := strings.Cut(item.Annotations["description"], "\n")
			fmt.Fprintf(o.Out, "%s\n  Project: %s\n  %s\n", item.Name, item.Namespace, description)
		}
		fmt.Fprintln(o.Out)
	}
	if len(streams) > 0 {
		fmt.Fprintln(o.Out, "Image streams (oc new-app --image-stream=<image-stream> [--code=<source>])\n-----")
		for _, item := range streams {
			tags := tagsOf(&item)
			if len(tags) == 0 {
				tags = []string{"<none>"}
			}
			fmt.Fprintf(o.Out, "%s\n  Project: %s\n  Tags:    %s\n", item.Name, item.Namespace, strings.Join(tags, ", "))
		}
		fmt.Fprintln(o.Out)
	}
	if len(images) > 0 {
		fmt.Fprintln(o.Out, "Docker images (oc new-app --docker-image=<docker-image> [--code=<source>])\n-----")
		for _, image := range images {
			fmt.Fprintf(o.Out, "%s\n  Tags:    %s\n", image.Name, image.Tag)
		}
		fmt.Fprintln(o.Out)
	}
}

// tagsOf returns an image stream's tags in sorted order, including tags without an imported image.
// It omits hidden tags.
func tagsOf(stream *imagev1.ImageStream) (tags []string) {
	for _, tag := range stream.Status.Tags {
		tags = append(tags, tag.Tag)
	}
	for _, tag := range stream.Spec.Tags {
		tags = append(tags, tag.Name)
	}
	tags = slices.DeleteFunc(tags, func(tag string) bool { return newapp.Hidden(stream, tag) })
	slices.Sort(tags)
	return slices.Compact(tags)
}
