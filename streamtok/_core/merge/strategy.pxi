"""Choose the fastest kernels that this processor can run. Results do not depend on the choice."""

strategy.merge_batch = st_merge_batch_tier(ST_ANY)
strategy.keys = st_keys_tier(ST_ANY)
strategy.find_pair = st_find_pair_tier(ST_ANY)
strategy.transcode = st_transcode_tier(ST_ANY)
strategy.leads = st_leads_tier(ST_ANY)
strategy.look_period = PERIOD
