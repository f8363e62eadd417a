/** Says how keys stand, in Lua: `look` of `decide.ts`. Instants are distances from now; false where there is none. */
export const LOOK_LUA = `
F.open()
local told, views, members = {}, {}, 0
local function from(at) return at > -huge and at < huge and at - now end
for index, state in ipairs(states) do
  local key, list = op.keys[index], {}
  local rule = key.rule
  if state.line > 0 then F.dropLate(state) end
  F.prepare(state, rule, key.slowUs)
  F.ready(state, rule, key.cost, 1, NOBODY, list, index)
  for _, one in ipairs(list) do
    local awaited = one.awaited and from(one.awaited) or false
    told[#told + 1] = { one.index, one.limit, from(one.at), awaited, one.because or false, one.which or 0 }
  end
  local owed, windows, holds = rule.count and F.owedAt(rule.count, state.owed, state.seen, now), {}, state.rest.holds
  for which, window in ipairs(rule.windows) do
    local used, first, log = F.windowUsed(state, window)
    local leaves = log and first < log.size and F.instant(log, first) + window.per or -huge
    windows[which] = { used, from(F.windowFree(state, rule, window, 1)), from(leaves) }
  end
  views[index] = {
    from(state.last), from(holds and holds.incident and holds.incident.till or -huge), windows, state.starts, state.throttled,
    state.rest.places and state.rest.places.count or 0, state.line, owed and max(0, rule.burst - ceil(owed / rule.per)) or 0,
  }
  members = max(members, state.members)
end
return F.reply(function() return { members, told, views } end)
`;
