package retention

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Usage lists the objects that use the cluster's images, and the images that pruning would remove.
type Usage struct {
	Images []ImageUsage `json:"images"`
	// Invalid lists the references that cannot be parsed. If the list is not empty, pruning does
	// not remove anything.
	Invalid []string `json:"invalid"`
}

// ImageUsage lists an image's tags, as PROJECT/STREAM:TAG, and the objects that use the image. A
// tag is listed if its history contains the image. An object is listed if it refers to the image
// itself, or to a tag whose newest image is this image.
type ImageUsage struct {
	Name     string   `json:"name"`
	Size     int64    `json:"size"` // bytes
	Tags     []string `json:"tags"`
	Users    []string `json:"users"`
	Prunable bool     `json:"prunable"`
}

// Usage returns the usage of the images in s, largest first.
func (k Rules) Usage(s State, now time.Time) Usage {
	usage := Usage{Images: []ImageUsage{}, Invalid: []string{}}
	for _, problem := range s.References.Invalid {
		usage.Invalid = append(usage.Invalid, problem.Error())
	}
	prunable := map[string]bool{}
	if len(usage.Invalid) == 0 {
		for _, image := range k.Find(s, now).Images {
			prunable[image.Name] = true
		}
	}
	tags, users := s.tags()
	for i := range s.Images {
		name := s.Images[i].Name
		for _, owner := range s.References.Images[name] {
			add(users, name, owner.Kind+" "+owner.Namespace+"/"+owner.Name)
		}
		usage.Images = append(usage.Images, ImageUsage{
			Name: name, Size: SizeOf(&s.Images[i]), Tags: sorted(tags[name]), Users: sorted(users[name]), Prunable: prunable[name],
		})
	}
	slices.SortStableFunc(usage.Images, func(a, b ImageUsage) int { return cmp.Compare(b.Size, a.Size) })
	return usage
}

// tags returns two maps, keyed by image. tags contains the tags whose history contains the image.
// users contains the users of the tags whose newest image is this image.
func (s State) tags() (tags, users map[string]map[string]bool) {
	tags, users = map[string]map[string]bool{}, map[string]map[string]bool{}
	for _, stream := range s.Streams {
		for _, tag := range stream.Status.Tags {
			name := stream.Namespace + "/" + stream.Name + ":" + tag.Tag
			for i, event := range tag.Items {
				add(tags, event.Image, name)
				if i > 0 {
					continue
				}
				for _, owner := range s.References.Tags[name] {
					add(users, event.Image, owner.Kind+" "+owner.Namespace+"/"+owner.Name)
				}
			}
		}
	}
	return tags, users
}

func add(to map[string]map[string]bool, key, value string) {
	if to[key] == nil {
		to[key] = map[string]bool{}
	}
	to[key][value] = true
}

// sorted returns a sorted list that is never nil, because JSON distinguishes null from an empty
// list.
func sorted(values map[string]bool) []string {
	return append([]string{}, slices.Sorted(maps.Keys(values))...)
}
