package state

// Look yields all keys that have state, for who looks at it between two records: unlike Each it begins no epoch, so that nothing is copied
// because of it. Nothing may be written meanwhile.
func (k *Keyed[K]) Look(yield func(K) bool) {
	v := k.present()
	for _, p := range v.pages() {
		for m := p.live; m != 0; m &= m - 1 {
			if !yield(*k.slots.at(p, lowest(m))) {
				return
			}
		}
	}
}
